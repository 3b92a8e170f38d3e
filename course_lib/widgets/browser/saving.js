// What JupyterLab writes to the file. A widget ends with its kernel, so the reference to it is useless there and would
// hide the picture. The file gets the picture as last seen instead; the page keeps the widget.

const VIEW = "application/vnd.jupyter.widget-view+json";
const SHOWN = Symbol.for("course: outputs by widget");

// A PNG in base64 of a picture with a line of text below it, as in live_figure.py.
const withLine = (image, text, width) => {
  const canvas = document.createElement("canvas");
  const scale = image.naturalWidth / width;
  canvas.width = image.naturalWidth;
  canvas.height = image.naturalHeight + (text ? Math.round(22 * scale) : 0);
  const paper = canvas.getContext("2d");
  paper.fillStyle = "white";
  paper.fillRect(0, 0, canvas.width, canvas.height);
  paper.drawImage(image, 0, 0);
  Object.assign(paper, { fillStyle: "#1f5fa8", font: `${12 * scale}px DejaVu Sans, sans-serif`, textBaseline: "middle" });
  paper.fillText(text, 8 * scale, image.naturalHeight + 11 * scale);
  return canvas.toDataURL().split(",")[1];
};

const withoutWidgets = (output, shown) => {
  const { [VIEW]: view, ...data } = output.data ?? {};
  return view && shown.has(view.model_id) ? { ...output, data: { ...data, ...shown.get(view.model_id)() } } : output;
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
