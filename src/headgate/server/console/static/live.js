// Shows HTML and changes only what differs when new HTML comes: focus, selection, scroll position
// and opened details stay as they are. Children with a data-key are found again by it.
function matches(old, next) {
  return old.nodeType === next.nodeType && old.nodeName === next.nodeName && !old.dataset?.key;
}

function morphChildren(from, to) {
  const keyed = new Map();
  for (const child of from.children) if (child.dataset?.key) keyed.set(child.dataset.key, child);
  let cursor = from.firstChild;
  for (const next of [...to.childNodes]) {
    const key = next.dataset?.key;
    const match = key ? keyed.get(key) : cursor && matches(cursor, next) ? cursor : undefined;
    if (match === undefined) {
      from.insertBefore(next, cursor);
      continue;
    }
    if (match === cursor) cursor = cursor.nextSibling;
    else from.insertBefore(match, cursor);
    morph(match, next);
  }
  while (cursor) {
    const rest = cursor.nextSibling;
    cursor.remove();
    cursor = rest;
  }
}

function morph(from, to) {
  if (from.nodeType !== Node.ELEMENT_NODE) {
    if (from.data !== to.data) from.data = to.data;
    return;
  }
  if (from.isEqualNode(to)) return;
  for (const { name, value } of to.attributes)
    if (from.getAttribute(name) !== value) from.setAttribute(name, value);
  for (const { name } of [...from.attributes])
    if (!to.hasAttribute(name) && !(name === "open" && from.nodeName === "DETAILS"))
      from.removeAttribute(name);
  morphChildren(from, to);
}

export default {
  template: `<component :is="tag" @click="click" @keydown="keydown"></component>`,
  mounted() {
    this.paint();
  },
  updated() {
    this.paint();
  },
  methods: {
    paint() {
      if (this.html === this.painted) return;
      this.painted = this.html;
      const next = document.createElement("div");
      next.setHTML(this.html);
      const focused = document.activeElement;
      // What is read at its end stays at its end.
      const stick = this.$el.querySelector("[data-stick]");
      const atEnd = !stick || stick.scrollTop + stick.clientHeight >= stick.scrollHeight - 4;
      morphChildren(this.$el, next);
      const stuck = this.$el.querySelector("[data-stick]");
      if (stuck && atEnd) stuck.scrollTop = stuck.scrollHeight;
      if (focused !== document.activeElement && this.$el.contains(focused))
        focused.focus({ preventScroll: true });
    },
    tell(event) {
      const source = event.target.closest("[data-act]");
      if (!source || !this.$el.contains(source)) return;
      event.preventDefault();
      this.$emit("act", { action: source.dataset.act, value: source.dataset.value ?? "" });
    },
    click(event) {
      this.tell(event);
    },
    keydown(event) {
      // Buttons and links turn these keys into clicks by themselves.
      if (event.key !== "Enter" && event.key !== " ") return;
      if (event.target.closest("button, a, input, select, textarea, summary")) return;
      this.tell(event);
    },
  },
  props: {
    html: String,
    tag: String,
  },
};
