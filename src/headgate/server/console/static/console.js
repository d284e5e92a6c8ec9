// Before the first paint: which theme, and what the keyboard does.
window.headgate = (() => {
  const key = "headgate-theme";
  const read = () => {
    try {
      return localStorage.getItem(key) || "auto";
    } catch {
      return "auto";
    }
  };
  const apply = (theme) => {
    document.documentElement.dataset.theme = theme;
    if (typeof setDark === "function") setDark(theme === "auto" ? undefined : theme === "dark");
    for (const each of document.querySelectorAll("[data-theme-choice]"))
      each.setAttribute("aria-pressed", String(each.dataset.themeChoice === theme));
  };
  const choose = (theme) => {
    try {
      localStorage.setItem(key, theme);
    } catch {
      // A browser that keeps nothing still shows it until the page is left.
    }
    apply(theme);
  };
  const isTyping = (target) =>
    target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.nodeName);
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
    if (isTyping(event.target)) return;
    const filter = document.querySelector("[data-filter] input, input[data-filter]");
    if (!filter) return;
    event.preventDefault();
    filter.focus();
    filter.select?.();
  });
  document.addEventListener("click", (event) => {
    const choice = event.target.closest?.("[data-theme-choice]");
    if (choice) choose(choice.dataset.themeChoice);
  });
  document.addEventListener("DOMContentLoaded", () => {
    document.getElementById("popup")?.setAttribute("role", "alert");
    apply(read());
  });
  document.documentElement.dataset.theme = read();
  return {
    // Called just before the live page is made.
    apply: () => {
      apply(read());
      document.querySelector(".hg-early")?.remove();
      document.documentElement.dataset.live = "";
    },
  };
})();
