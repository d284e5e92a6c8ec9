// The timeline of a job's past: marks on a line, and a handle that is dragged to a moment.
// What a moment means is decided by the server; here is only what the hand needs at once.
// The console tells all times in UTC, as the command line does.
const CLOCK = { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false, timeZone: "UTC" };
const DAY = { day: "numeric", month: "short", timeZone: "UTC" };
const LABEL_ROOM = 96;
const SETTLED_MS = 180;

export default {
  template: `
    <div class="hg-track">
      <div
        ref="rail"
        class="hg-track-rail"
        role="slider"
        tabindex="0"
        aria-orientation="horizontal"
        :aria-label="label"
        :aria-valuemin="first"
        :aria-valuemax="last"
        :aria-valuenow="at"
        :aria-valuetext="spoken"
        :aria-disabled="marks.length ? 'false' : 'true'"
        @pointerdown="grab"
        @pointermove="drag"
        @pointerup="release"
        @pointercancel="release"
        @keydown="press"
      >
        <div class="hg-track-line"></div>
        <div
          v-for="each in cuts"
          :key="'cut' + each.start"
          class="hg-track-cut"
          :style="{ left: percent(each.start), width: percent(each.end - each.start) }"
        ><span>{{ each.lasted }}</span></div>
        <div v-if="chosen" class="hg-track-again" :style="{ left: percent(chosen.place) }"></div>
        <div
          v-for="each in marks"
          :key="each.source"
          class="hg-track-mark"
          :class="[each.kind, { chosen: chosen && chosen.source === each.source, pinned: each.pinned }]"
          :style="{ left: percent(each.place) }"
          :title="each.title"
        ></div>
        <div
          v-for="each in behind"
          :key="'behind' + each.source"
          class="hg-track-mark behind"
          :class="each.kind"
          :style="{ left: percent(each.place) }"
          :title="each.title"
        ></div>
        <div
          v-for="each in restores"
          :key="'restore' + each.at"
          class="hg-track-restore"
          :style="{ left: percent(each.place) }"
          :title="each.title"
        ></div>
        <div class="hg-track-handle" :style="{ left: percent(placeOf(at)) }"></div>
      </div>
      <div class="hg-track-times" aria-hidden="true">
        <span
          v-for="each in times"
          :key="each.place"
          :class="each.side"
          :style="{ left: percent(each.place) }"
        >{{ each.text }}</span>
      </div>
    </div>`,
  props: {
    label: String,
    marks: { type: Array, default: () => [] },
    behind: { type: Array, default: () => [] },
    restores: { type: Array, default: () => [] },
    stops: { type: Array, default: () => [] },
    cuts: { type: Array, default: () => [] },
    value: Number,
  },
  emits: ["moment"],
  data() {
    return { at: this.value, held: false, width: 0, waiting: null };
  },
  watch: {
    value(now) {
      if (!this.held && this.waiting === null) this.at = now;
    },
  },
  computed: {
    first() {
      return this.stops.length ? this.stops[0][1] : 0;
    },
    last() {
      return this.stops.length ? this.stops[this.stops.length - 1][1] : 0;
    },
    chosen() {
      return this.takenAt(this.at);
    },
    spoken() {
      const taken = this.chosen ? `a restore takes ${this.chosen.id}` : "no checkpoint was complete by then";
      return `${this.day(this.at)} ${this.clock(this.at)}, ${taken}`;
    },
    times() {
      const found = [];
      let free = 0;
      for (const each of this.marks) {
        const x = each.place * this.width;
        if (x < free || x > this.width - LABEL_ROOM * 1.6) continue;
        found.push({ place: each.place, text: this.clock(each.at), side: x < LABEL_ROOM / 2 ? "first" : "" });
        free = x + LABEL_ROOM;
      }
      if (this.stops.length) found.push({ place: 1, text: "now", side: "last" });
      return found;
    },
  },
  mounted() {
    this.resizing = new ResizeObserver(() => (this.width = this.$refs.rail.clientWidth));
    this.resizing.observe(this.$refs.rail);
  },
  unmounted() {
    this.resizing.disconnect();
    clearTimeout(this.waiting);
  },
  methods: {
    percent(share) {
      return `${(share * 100).toFixed(3)}%`;
    },
    clock(at) {
      return new Date(at).toLocaleTimeString("en-GB", CLOCK);
    },
    day(at) {
      return new Date(at).toLocaleDateString("en-GB", DAY);
    },
    takenAt(at) {
      let taken = null;
      for (const each of this.marks) if (each.at <= at) taken = each;
      return taken;
    },
    placeOf(at) {
      return this.between(at, 1, 0);
    },
    momentOf(place) {
      return Math.round(this.between(place, 0, 1));
    },
    // Goes from one column of the stops to the other; between two of them all is even.
    between(value, from, to) {
      const stops = this.stops;
      if (!stops.length) return to ? this.at : 1;
      let i = 1;
      while (i < stops.length - 1 && stops[i][from] < value) i++;
      const [left, right] = [stops[i - 1], stops[i]];
      const share = (value - left[from]) / (right[from] - left[from] || 1);
      return left[to] + (right[to] - left[to]) * Math.min(Math.max(share, 0), 1);
    },
    grab(event) {
      if (event.button !== 0 || !this.marks.length) return;
      this.held = true;
      this.$refs.rail.setPointerCapture(event.pointerId);
      this.$refs.rail.focus({ preventScroll: true });
      event.preventDefault();
      this.drag(event);
    },
    drag(event) {
      if (!this.held) return;
      const box = this.$refs.rail.getBoundingClientRect();
      this.go(this.momentOf((event.clientX - box.left) / box.width));
    },
    release() {
      if (!this.held) return;
      this.held = false;
      this.tell();
    },
    press(event) {
      const step = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -5, PageUp: 5 }[event.key];
      if (!this.marks.length || (step === undefined && event.key !== "Home" && event.key !== "End")) return;
      event.preventDefault();
      // Two may have been complete at one moment; the keys go from moment to moment.
      const moments = [...new Set([...this.marks.map((each) => each.at), this.last])];
      if (event.key === "Home") return this.go(moments[0]);
      if (event.key === "End") return this.go(this.last);
      let here = moments.findLastIndex((each) => each <= this.at);
      // From between two, the first step back is to the earlier one of them.
      if (step < 0 && here >= 0 && moments[here] < this.at) here += 1;
      this.go(moments[Math.min(Math.max(here + step, 0), moments.length - 1)]);
    },
    go(at) {
      this.at = Math.min(Math.max(at, this.first), this.last);
      clearTimeout(this.waiting);
      this.waiting = setTimeout(this.tell, SETTLED_MS);
    },
    tell() {
      clearTimeout(this.waiting);
      this.waiting = null;
      this.$emit("moment", { at: this.at });
    },
  },
};
