// Copy code: one line that recreates this state, shown so that it can also be copied by hand.

const makeCode = (line, model, button, words) => {
  const show = () => {
    line.textContent = model.get("code");
    button.hidden = !line.textContent;
  };
  show();
  line.hidden = true;
  line.tabIndex = 0;
  button.textContent = words.code;
  button.onclick = async () => {
    line.hidden = false;
    try {
      await navigator.clipboard.writeText(line.textContent);
      button.textContent = words.copied;
      setTimeout(() => (button.textContent = words.code), 1500);
    } catch {
      getSelection().selectAllChildren(line); // the browser does not let us
    }
  };
  model.on("change:code", show);
  return () => model.off("change:code", show);
};
