// Work that takes long says that it works, in the explorer that is used.

const PATIENCE = 400; // milliseconds

// Write on a sign around a picture while the kernel is busy; return a function that ends it.
const showWork = (explorer, model, sign, words) => {
  const kernel = model.widget_manager?.kernel;
  if (!kernel?.statusChanged) return () => {}; // not JupyterLab
  let timer = null;
  const show = (works) => {
    explorer.classList.toggle("course-picture-works", works);
    sign.textContent = works ? words.working : "";
    sign.hidden = !works;
  };
  const follow = () => {
    clearTimeout(timer);
    if (kernel.status !== "busy") show(false);
    else timer = setTimeout(() => show(explorer.matches(":focus-within")), PATIENCE);
  };
  kernel.statusChanged.connect(follow);
  explorer.addEventListener("focusin", follow);
  return () => {
    clearTimeout(timer);
    kernel.statusChanged.disconnect(follow);
    explorer.removeEventListener("focusin", follow);
  };
};
