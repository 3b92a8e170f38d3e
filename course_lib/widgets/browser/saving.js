// What JupyterLab writes to the file. A widget ends with its kernel, so the reference to it is useless there and would
// hide the picture. The file gets the picture as last seen instead; the page keeps the widget.

const VIEW = "application/vnd.jupyter.widget-view+json";
const SHOWN = Symbol.for("course: outputs by widget");

const base64 = (bytes) => {
  const codes = new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let text = "";
  for (let i = 0; i < codes.length; i += 8192) text += String.fromCharCode(...codes.subarray(i, i + 8192));
  return btoa(text);
};

const withoutWidgets = (output, shown) => {
  const { [VIEW]: view, ...data } = output.data ?? {};
  return view && shown.has(view.model_id) ? { ...output, data: { ...data, ...shown.get(view.model_id)(data) } } : output;
};

// Register the widget whose id is the model's `shown_in`. `latest` returns what replaces parts of its saved output.
const keepInFile = (model, latest) => {
  const notebook = model.widget_manager?.context?.model;
  if (!notebook?.toJSON) return; // not JupyterLab
  if (!notebook[SHOWN]) {
    const shown = (notebook[SHOWN] = new Map());
    const write = notebook.toJSON.bind(notebook);
    notebook.toJSON = () => {
      const file = write();
      const cells = file.cells.map((cell) =>
        cell.outputs ? { ...cell, outputs: cell.outputs.map((output) => withoutWidgets(output, shown)) } : cell,
      );
      return { ...file, cells };
    };
  }
  const register = () => notebook[SHOWN].set(model.get("shown_in"), latest);
  register();
  model.on("change:shown_in", register);
};
