// The graph of a job: dagre places boxes and labels, and this draws them with the lines between.
// Each label has a place of its own in dagre's layout, so that no line and no box covers it.
import { h } from "vue";
import { Graph, layout } from "headgate-dagre/dagre.esm.js";

// In a box narrower than this, the graph runs from top to bottom.
const NARROW = 640;
// Shrunk to fit as long as it can be read; a larger one has its own size, and scrolls in its box.
const SMALLEST = 0.85;
const MARGIN = 8;
const GAPS = { nodesep: 24, edgesep: 14, ranksep: 56, marginx: MARGIN, marginy: MARGIN };
const INSET = 12;
const LINE = 17;
const LABEL_LINE = 14;
const LABEL_GAP = 4;
// How long an arrow's head is.
const TIP = 7;
const LONGEST_TEXT = 236;
const SHORTEST_TEXT = 120;
const LONGEST_LABEL = 150;
// Widths grow by steps and never shrink: counts that change do not move the boxes.
const STEP = 12;

const text = (look, x, y, words, more = {}) => h("text", { class: look, x, y, ...more }, words);

// Returns where everything is: boxes by id, and for each edge its label and its points. The order of
// the edges decides where dagre's search begins, so that the better of two results is taken.
function arrange(boxes, edges, across) {
  const one = place(boxes, edges, across);
  if (!crossings(one, edges, across)) return one;
  const other = place(boxes, edges.toReversed(), across);
  return crossings(other, edges, across) < crossings(one, edges, across) ? other : one;
}

function place(boxes, edges, across) {
  const graph = new Graph({ multigraph: true });
  graph.setGraph({ ...GAPS, rankdir: across ? "LR" : "TB" });
  for (const { id, width, height } of boxes) graph.setNode(id, { width, height });
  for (const { key, source, target, width, height } of edges)
    graph.setEdge(source, target, { width, height, labelpos: "c" }, key);
  layout(graph);
  const { width, height } = graph.graph();
  return {
    width,
    height,
    boxes: new Map(boxes.map(({ id }) => [id, graph.node(id)])),
    routes: new Map(edges.map(({ key, source, target }) => [key, graph.edge(source, target, key)])),
  };
}

function crossings(placed, edges, across) {
  const steps = edges.flatMap(({ key, source, target }) => {
    const between = placed.routes.get(key).points.slice(1, -1);
    const points = [placed.boxes.get(source), ...between, placed.boxes.get(target)];
    const sorted = points.map(({ x, y }) => (across ? [x, y] : [y, x]));
    return sorted.slice(1).map((end, n) => [sorted[n], end]);
  });
  const cross = ([a, b], [c, d]) =>
    Math.abs(a[0] - c[0]) < 1 && Math.abs(b[0] - d[0]) < 1 && (a[1] - c[1]) * (b[1] - d[1]) < 0;
  return steps.reduce((sum, one, n) => sum + steps.slice(0, n).filter((other) => cross(one, other)).length, 0);
}

// Lines bend between two ranks only; beside the boxes and labels of a rank they are straight.
// "Along" is the direction from rank to rank, "aside" the one across it.
function rankEdges(placed, across) {
  const ranks = [];
  const add = ({ x, y, width, height }) => {
    const [centre, half] = across ? [x, width / 2] : [y, height / 2];
    const rank = ranks.find((known) => Math.abs(known.centre - centre) < 1);
    if (rank) rank.half = Math.max(rank.half, half);
    else ranks.push({ centre, half });
  };
  for (const box of placed.boxes.values()) add(box);
  for (const route of placed.routes.values()) if (route.width) add(route);
  return (centre) => ranks.find((known) => Math.abs(known.centre - centre) < 1)?.half ?? 0;
}

// Returns the pieces of a line from box to box, each a list of points; a label is between two.
function trace(edge, placed, halfOf, across) {
  const split = ({ x, y, width = 0, height = 0 }) =>
    across ? [x, y, width / 2] : [y, x, height / 2];
  const [from, fromAside, fromHalf] = split(placed.boxes.get(edge.source));
  const [to, toAside, toHalf] = split(placed.boxes.get(edge.target));
  const route = placed.routes.get(edge.key);
  const [label, , labelHalf] = edge.width ? split(route) : [NaN, 0, 0];
  let piece = [[from + fromHalf, fromAside], [from + halfOf(from), fromAside]];
  const pieces = [piece];
  // The first and the last point are on the boxes.
  for (const [along, aside] of route.points.slice(1, -1).map(split)) {
    const half = halfOf(along);
    piece.push([along - half, aside]);
    if (Math.abs(along - label) < 1) {
      piece.push([along - labelHalf - LABEL_GAP, aside]);
      piece = [[along + labelHalf + LABEL_GAP, aside]];
      pieces.push(piece);
    }
    piece.push([along + half, aside]);
  }
  piece.push([to - halfOf(to) - TIP, toAside], [to - toHalf, toAside]);
  return pieces;
}

function at([along, aside], across) {
  return (across ? [along, aside] : [aside, along]).map(Math.round).join(" ");
}

function path(points, across) {
  let drawn = `M${at(points[0], across)}`;
  for (let i = 1; i < points.length; i++) {
    const [[a, b], [c, d]] = [points[i - 1], points[i]];
    const middle = (a + c) / 2;
    const bend = [[middle, b], [middle, d], [c, d]].map((point) => at(point, across));
    drawn += b === d ? `L${bend[2]}` : `C${bend.join(" ")}`;
  }
  return drawn;
}

function arrow([along, aside], across) {
  const corners = [[along - TIP, aside - 4], [along, aside], [along - TIP, aside + 4]];
  return `M${corners.map((corner) => at(corner, across)).join("L")}`;
}

export default {
  props: { nodes: Array, edges: Array, chosen: String, label: String, nothing: String },
  emits: ["node"],
  data() {
    return { width: 0 };
  },
  created() {
    this.known = new Map();
    this.sizes = new Map();
    this.last = { key: "" };
  },
  mounted() {
    const probe = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    probe.setAttribute("class", "hg-graph-probe");
    probe.setAttribute("aria-hidden", "true");
    this.probe = probe.appendChild(document.createElementNS(probe.namespaceURI, "text"));
    this.$el.append(probe);
    this.resizing = new ResizeObserver(() => (this.width = this.$el.clientWidth));
    this.resizing.observe(this.$el);
  },
  updated() {
    if (this.seen || !this.width || !this.nodes?.length) return;
    this.seen = true;
    // From top to bottom, the first source may be anywhere: it is what is seen first.
    const first = this.placed.boxes.get(this.nodes[0].id);
    if (!this.across) this.$el.scrollLeft = first.x - this.width / 2;
  },
  unmounted() {
    this.resizing.disconnect();
  },
  computed: {
    across() {
      return this.width >= NARROW;
    },
    boxes() {
      return this.nodes.map((node) => this.box(node));
    },
    lines() {
      return this.edges.map((edge) => {
        const words = edge.lines.map((line) => this.fit("hg-line-text", line, LONGEST_LABEL));
        const width = words.length ? this.grown(`edge ${edge.key}`, "hg-line-text", words) : 0;
        return { ...edge, words, width, height: words.length * LABEL_LINE };
      });
    },
    placed() {
      const { boxes, lines, across } = this;
      const sizes = [...boxes, ...lines].map(({ id, key, width, height }) => [id ?? key, width, height]);
      const key = JSON.stringify([across, sizes]);
      if (this.last.key !== key) this.last = { key, placed: arrange(boxes, lines, across) };
      return this.last.placed;
    },
  },
  render() {
    if (!this.nodes?.length) return h("div", h("p", { class: "hg-empty" }, this.nothing));
    return h("div", this.width ? [this.drawing()] : []);
  },
  methods: {
    measure(look, words) {
      const key = `${look} ${words}`;
      if (!this.known.has(key)) {
        // Counts change all day; what was measured for earlier ones is let go of.
        if (this.known.size > 2000) this.known.clear();
        this.probe.setAttribute("class", look);
        this.probe.textContent = words;
        this.known.set(key, this.probe.getComputedTextLength());
      }
      return this.known.get(key);
    },
    fit(look, words, most) {
      if (this.measure(look, words) <= most) return words;
      let length = words.length - 1;
      while (length > 1 && this.measure(look, `${words.slice(0, length)}…`) > most) length -= 1;
      return `${words.slice(0, length)}…`;
    },
    grown(key, look, words, least = 0) {
      const wanted = Math.max(least, ...words.map((line) => this.measure(look, line)));
      const width = Math.max(Math.ceil(wanted / STEP) * STEP, this.sizes.get(key) ?? 0);
      this.sizes.set(key, width);
      return width;
    },
    box(node) {
      const fit = (look, words) => this.fit(look, words, LONGEST_TEXT);
      const title = fit("hg-box-title", node.title);
      const lines = node.lines.map((line) => fit("hg-box-line", line));
      const head = this.measure("hg-box-kind", `${node.kind}   ${node.busy?.words ?? ""}`);
      const least = Math.max(SHORTEST_TEXT, head, this.measure("hg-box-title", title));
      const below = node.letters ? [...lines, node.letters.words] : lines;
      const inside = this.grown(`node ${node.id}`, "hg-box-line", below, least);
      const height = 52 + LINE * Math.max(2, below.length);
      return { ...node, title, lines, full: node.title, width: inside + 2 * INSET, height };
    },
    drawing() {
      const { boxes, lines, across, placed } = this;
      const { width, height } = placed;
      const halfOf = rankEdges(placed, across);
      const fits = width * SMALLEST <= this.width;
      const size = { width: `${Math.ceil(width)}px`, maxWidth: fits ? "100%" : "none" };
      return h(
        "svg",
        { viewBox: `0 0 ${width} ${height}`, style: size, class: "hg-graph", role: "group", "aria-label": this.label },
        [
          h("g", { "aria-hidden": "true" }, lines.map((edge) => this.line(edge, halfOf))),
          ...boxes.map((box) => this.boxOf(box, placed.boxes.get(box.id))),
        ],
      );
    },
    line(edge, halfOf) {
      const { placed, across } = this;
      const pieces = trace(edge, placed, halfOf, across);
      const { x, y } = placed.routes.get(edge.key);
      const first = y - (edge.height - LABEL_LINE) / 2 + 4;
      return h("g", { key: edge.key, class: edge.look }, [
        ...pieces.map((points) => h("path", { d: path(points, across), class: "hg-line" })),
        h("path", { d: arrow(pieces.at(-1).at(-1), across), class: "hg-line hg-arrow" }),
        ...edge.words.map((words, n) =>
          text("hg-line-text", x, first + n * LABEL_LINE, [h("title", edge.lines[n]), words], {
            "text-anchor": "middle",
          }),
        ),
      ]);
    },
    boxOf(box, { x, y, width, height }) {
      const drawn = [
        h("title", box.hint),
        h("rect", { width, height, rx: 5, class: "hg-box-edge" }),
        text("hg-box-kind", INSET, 18, box.kind),
        text("hg-box-title", INSET, 36, box.title),
        ...box.lines.map((line, n) => text("hg-box-line", INSET, 54 + n * LINE, line)),
      ];
      if (box.busy) drawn.push(...this.busy(box.busy, width, height));
      const props = {
        class: `hg-box ${box.look}`,
        tabindex: 0,
        role: "button",
        "aria-label": box.spoken,
        "aria-pressed": box.id === this.chosen ? "true" : "false",
        onClick: () => this.$emit("node", box.id),
        onKeydown: (event) => this.press(event, box.id),
      };
      const inside = [h("g", props, drawn)];
      if (box.letters) inside.push(this.letters(box));
      const place = `translate(${x - width / 2} ${y - height / 2})`;
      return h("g", { key: box.id, transform: place }, inside);
    },
    busy({ words, share, tone }, width, height) {
      const bar = { x: 1, y: height - 6, height: 5 };
      return [
        text("hg-box-kind", width - INSET, 18, words, { "text-anchor": "end" }),
        h("rect", { ...bar, width: width - 2, class: "hg-bar-room" }),
        h("rect", { ...bar, width: (width - 2) * share, class: `hg-bar hg-${tone}` }),
      ];
    },
    letters({ letters, lines }) {
      const words = text("hg-box-line", INSET, 54 + lines.length * LINE, letters.words);
      return h("a", { class: "hg-box-letters", href: letters.href, "aria-label": letters.spoken }, words);
    },
    press(event, id) {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      this.$emit("node", id);
    },
  },
};
