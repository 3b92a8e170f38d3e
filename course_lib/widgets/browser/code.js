// Copy code: one line that recreates this state, shown so that it can also be copied by hand.

const makeCode = (line, model, button, words) => {
  const show = () => (line.textContent = model.get("code"));
  line.hidden = true;
  line.tabIndex = 0;
  button.textContent = words.code;
  button.onclick = async () => {
    show();
    line.hidden = false;
    try {
      await navigator.clipboard.writeText(model.get("code"));
      button.textContent = words.copied;
      setTimeout(() => (button.textContent = words.code), 1500);
    } catch {
      getSelection().selectAllChildren(line); // the browser does not let us
    }
  };
  button.hidden = !model.get("code");
  const changed = () => {
    button.hidden = !model.get("code");
    if (!line.hidden) show();
  };
  model.on("change:code", changed);
  return () => model.off("change:code", changed);
};
