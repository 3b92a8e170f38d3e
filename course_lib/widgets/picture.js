// The browser's half of picture.py: swap the PNG, look values up under the pointer, save files.

const download = (bytes, type, file) => {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([bytes], { type }));
  link.download = file;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
};

const short = (number) => (Number.isFinite(number) ? String(Number(number.toPrecision(4))) : "–");

// Where the pointer (in fractions of the picture) stands: a text, and the spot to mark.
const readGrid = (region, across, down) => {
  const [rows, columns] = region.shape;
  const column = Math.min(columns - 1, Math.floor(across * columns));
  const row = Math.min(rows - 1, Math.floor(down * rows));
  const view = region.values; // a DataView of little-endian float32
  const value = view.getFloat32(4 * (row * columns + column), true);
  return {
    text: `${region.row_name} ${region.rows[row]}, ${region.column_name} ${region.columns[column]}: ${short(value)}`,
    mark: [column / columns, row / rows, 1 / columns, 1 / rows],
  };
};

const readLines = (region, across) => {
  const scale = region.log ? Math.log : (x) => x;
  const [low, high] = region.limits.map(scale);
  const wanted = low + across * (high - low);
  let nearest = 0;
  region.x.forEach((x, i) => {
    if (Math.abs(scale(x) - wanted) < Math.abs(scale(region.x[nearest]) - wanted)) nearest = i;
  });
  const at = (scale(region.x[nearest]) - low) / (high - low);
  const values = region.lines.map(([name, y]) => `${name} ${short(y[nearest])}`).join(", ");
  return { text: `${region.x_name} ${short(region.x[nearest])}: ${values}`, mark: [at, 0, 0, 1] };
};

const read = (regions, x, y) => {
  for (const region of regions) {
    const [left, top, right, bottom] = region.box;
    if (x < left || x > right || y < top || y > bottom) continue;
    const across = (x - left) / (right - left);
    const down = (y - top) / (bottom - top);
    const { text, mark } = region.kind === "grid" ? readGrid(region, across, down) : readLines(region, across);
    const [ml, mt, mw, mh] = mark;
    return {
      text,
      region,
      mark: [left + ml * (right - left), top + mt * (bottom - top), mw * (right - left), mh * (bottom - top)],
    };
  }
  return null;
};

// The sliders of ipywidgets have a label beside them but no name; give them one for screen readers.
const nameSliders = (explorer) => {
  for (const handle of explorer.querySelectorAll(".noUi-handle:not([aria-label])")) {
    const label = handle.closest(".jupyter-widgets:has(.widget-label)")?.querySelector(".widget-label");
    if (label) handle.setAttribute("aria-label", label.textContent);
  }
};

const render = ({ model, el }) => {
  const words = model.get("words");
  const make = (tag, className, parent) => {
    const node = document.createElement(tag);
    node.className = className;
    parent.append(node);
    return node;
  };
  const frame = make("div", "course-picture", el);
  const stage = make("div", "course-picture-stage", frame);
  stage.tabIndex = 0;
  stage.title = "";
  stage.setAttribute("role", "group");
  stage.setAttribute("aria-label", words.help);
  const image = make("img", "course-picture-image", stage);
  const mark = make("div", "course-picture-mark", stage);
  const tip = make("div", "course-picture-tip", stage);
  tip.setAttribute("role", "status");
  const bar = make("div", "course-picture-bar", frame);
  for (const kind of ["png", "svg"]) {
    const button = make("button", "course-picture-save", bar);
    button.type = "button";
    button.textContent = words[kind];
    button.onclick = () =>
      kind === "png"
        ? download(model.get("png"), "image/png", `${model.get("name")}.png`)
        : model.send({ wanted: "svg" });
  }

  let pointer = null; // where the reader looks, in fractions of the picture
  const point = () => {
    const found = pointer && read(model.get("hover"), ...pointer);
    mark.hidden = tip.hidden = !found;
    if (!found) return;
    const [left, top, width, height] = found.mark.map((fraction) => `${100 * fraction}%`);
    Object.assign(mark.style, { left, top, width, height });
    if (tip.textContent !== found.text) tip.textContent = found.text;
    const right = pointer[0] > 0.6;
    tip.style.left = right ? "auto" : `calc(${100 * pointer[0]}% + 14px)`;
    tip.style.right = right ? `calc(${100 * (1 - pointer[0])}% + 14px)` : "auto";
    tip.style.top = `calc(${100 * pointer[1]}% + 12px)`;
  };
  stage.onpointermove = (event) => {
    const box = image.getBoundingClientRect();
    pointer = [(event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height];
    point();
  };
  stage.onpointerleave = () => {
    pointer = null;
    point();
  };
  stage.onkeydown = (event) => {
    const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (!step && event.key !== "Escape") return;
    event.preventDefault();
    event.stopPropagation(); // the notebook would otherwise move to another cell
    if (!step) pointer = null;
    else if (!pointer) {
      const [left, top, right, bottom] = model.get("hover")[0]?.box ?? [0, 0, 1, 1];
      pointer = [(left + right) / 2, (top + bottom) / 2];
    } else {
      const cell = read(model.get("hover"), ...pointer)?.mark ?? [0, 0, 0, 0];
      const stride = [Math.max(cell[2], 0.01), cell[3] > 0.3 ? 0.05 : Math.max(cell[3], 0.01)];
      pointer = pointer.map((place, axis) => Math.min(1, Math.max(0, place + step[axis] * stride[axis])));
    }
    point();
  };

  const swap = () => {
    const address = URL.createObjectURL(new Blob([model.get("png")], { type: "image/png" }));
    const old = image.src;
    image.onload = () => old && URL.revokeObjectURL(old);
    image.src = address;
    image.alt = model.get("summary");
    image.style.width = `${model.get("width")}px`;
    image.style.aspectRatio = `${model.get("width")} / ${model.get("height")}`;
    point();
  };
  const save = (message, buffers) => {
    if (message.answer === "svg") download(buffers[0], "image/svg+xml", `${model.get("name")}.svg`);
  };
  model.on("change:png", swap);
  model.on("msg:custom", save);
  swap();
  const watcher = new MutationObserver(() => {
    const explorer = el.closest(".course-explorer");
    if (explorer) nameSliders(explorer);
  });
  watcher.observe(document.body, { childList: true, subtree: true });
  setTimeout(() => watcher.disconnect(), 5000); // controls are drawn within moments of the picture
  return () => {
    watcher.disconnect();
    model.off("change:png", swap);
    model.off("msg:custom", save);
    URL.revokeObjectURL(image.src);
  };
};

export default { render };
