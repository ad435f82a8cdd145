/** Light and dark: as the system prefers, until the switch is used.. */
{
  const root = document.documentElement;
  const button = document.getElementById("theme");
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  const show = (dark) => {
    root.dataset.theme = dark ? "dark" : "light";
    button.textContent = dark ? "Light" : "Dark";
    button.setAttribute("aria-label", `Switch to the ${dark ? "light" : "dark"} theme`);
    document.dispatchEvent(new Event("themechange"));
  };
  let chosen = false;
  system.addEventListener("change", () => chosen || show(system.matches));
  button.addEventListener("click", () => {
    chosen = true;
    show(root.dataset.theme !== "dark");
  });
  button.hidden = false;
  show(system.matches);
}
