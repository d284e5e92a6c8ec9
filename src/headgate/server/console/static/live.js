// Shows HTML as elements of Vue, which changes only what differs when new HTML comes: focus,
// selection and scroll position stay as they are. Children with a data-key are found by it again.
import { h } from "vue";

function toVue(node) {
  if (node.nodeType !== Node.ELEMENT_NODE) return node.data;
  const props = { key: node.dataset.key };
  for (const { name, value } of node.attributes) {
    // Details are opened once; from then on they are as the reader leaves them.
    if (name === "open") props.onVnodeMounted = (made) => (made.el.open = true);
    else props[`^${name}`] = value;
  }
  return h(node.localName, props, [...node.childNodes].map(toVue));
}

export default {
  props: { html: String, tag: String },
  emits: ["act"],
  render() {
    const parsed = document.createElement("div");
    parsed.setHTML(this.html);
    const handlers = { onClick: this.act, onKeydown: this.press };
    return h(this.tag, handlers, [...parsed.childNodes].map(toVue));
  },
  beforeUpdate() {
    this.focused = document.activeElement;
    // What is read at its end stays at its end.
    const box = this.$el.querySelector("[data-stick]");
    this.atEnd = !box || box.scrollTop + box.clientHeight >= box.scrollHeight - 4;
  },
  mounted() {
    this.atEnd = true;
    this.scroll();
  },
  updated() {
    this.scroll();
    // A row that moves to another place loses the focus.
    if (this.focused !== document.activeElement && this.$el.contains(this.focused))
      this.focused.focus({ preventScroll: true });
  },
  methods: {
    scroll() {
      const box = this.$el.querySelector("[data-stick]");
      if (box && this.atEnd) box.scrollTop = box.scrollHeight;
    },
    act(event) {
      const source = event.target.closest("[data-act]");
      if (!source || !this.$el.contains(source)) return;
      event.preventDefault();
      this.$emit("act", { action: source.dataset.act, value: source.dataset.value ?? "" });
    },
    press(event) {
      // Buttons and links turn these keys into clicks by themselves.
      if (event.key !== "Enter" && event.key !== " ") return;
      if (event.target.closest("button, a, input, select, textarea, summary")) return;
      this.act(event);
    },
  },
};
