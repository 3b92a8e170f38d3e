// Start this notebook again: save what is on the screen, let the kernel exchange the files, show the new one.

// Ask or tell something in a dialog that looks like JupyterLab's; resolves to whether the last button was pressed.
const ask = (title, text, ...buttons) =>
  new Promise((answered) => {
    const dialog = make("dialog", "course-dialog", document.body);
    Object.assign(dialog.style, { border: "none", padding: 0, background: "none", color: "inherit" });
    const content = make("form", "jp-Dialog-content", dialog);
    content.method = "dialog";
    make("h2", "jp-Dialog-header", content).textContent = dialog.ariaLabel = title;
    make("p", "jp-Dialog-body", content).textContent = text;
    const footer = make("div", "jp-Dialog-footer", content);
    make("div", "jp-Dialog-spacer", footer);
    for (const [number, words] of buttons.entries()) {
      const kind = number === buttons.length - 1 ? "accept" : "reject";
      const button = make("button", `jp-Dialog-button jp-mod-${kind} jp-mod-styled`, footer);
      make("div", "jp-Dialog-buttonLabel", button).textContent = words;
      button.value = kind;
    }
    dialog.onclose = () => {
      dialog.remove();
      answered(dialog.returnValue === "accept");
    };
    dialog.showModal();
  });

export default {
  render({ model, el }) {
    const page = model.widget_manager?.context;
    if (!page?.revert) return; // not JupyterLab
    keepInFile(model, () => ({ "text/plain": "" })); // the button ends with its kernel
    const words = model.get("words");
    const button = make("button", "jupyter-button widget-button", el);
    button.style.width = "auto";
    button.textContent = words.button;
    button.onclick = async () => {
      if (!(await ask(words.question, words.kept, words.cancel, words.again))) return;
      await page.save();
      model.send({ path: page.path });
    };
    const answered = async ({ problem, done }) => {
      if (!problem) await page.revert();
      ask(problem ? words.failed : words.done, problem || done, words.close);
    };
    model.on("msg:custom", answered);
    return () => model.off("msg:custom", answered);
  },
};
