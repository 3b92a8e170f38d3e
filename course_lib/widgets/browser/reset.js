// Start this notebook again: save what is on the screen, let the kernel exchange the files, show the new one.

export default {
  render({ model, el }) {
    const page = model.widget_manager?.context;
    if (!page?.revert) return; // not JupyterLab
    keepInFile(model, () => ({ "text/plain": "" })); // the button ends with its kernel
    const words = model.get("words");
    const button = document.createElement("button");
    button.className = "jupyter-button widget-button";
    button.style.width = "auto";
    button.textContent = words.button;
    button.onclick = async () => {
      if (!confirm(words.question)) return;
      await page.save();
      model.send({ path: page.path });
    };
    const answered = ({ problem }) => (problem ? alert(problem) : page.revert());
    model.on("msg:custom", answered);
    el.append(button);
    return () => model.off("msg:custom", answered);
  },
};
