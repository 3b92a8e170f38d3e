// The browser's half of picture.py: swap the PNG, look values up under the pointer, save files.

const download = (bytes, type, file) => {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([bytes], { type }));
  link.download = file;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
};

const short = (number) => {
  if (!Number.isFinite(number)) return "–"; // no value here
  return Math.abs(number) < 1e-9 ? "0" : String(Number(number.toPrecision(4)));
};

const clamp = (number, low, high) => Math.min(high, Math.max(low, number));

const nearest = (numbers, wanted) =>
  numbers.reduce((best, x, i) => (Math.abs(x - wanted) < Math.abs(numbers[best] - wanted) ? i : best), 0);

// A spot is a region of the picture (an entry of Picture.hover) with a column, and a row in a map.
// Coordinates are fractions of the picture, from its top left corner.
const locate = (regions, x, y) => {
  for (const region of regions) {
    const [left, top, right, bottom] = region.box;
    if (x < left || x > right || y < top || y > bottom) continue;
    const [across, down] = [(x - left) / (right - left), (y - top) / (bottom - top)];
    if (region.kind === "grid") {
      const [rows, columns] = region.shape;
      return { region, column: Math.min(columns - 1, Math.floor(across * columns)), row: Math.min(rows - 1, Math.floor(down * rows)) };
    }
    const [low, high] = region.limits.map(scaleOf(region));
    return { region, column: nearest(region.x.map(scaleOf(region)), low + across * (high - low)), row: 0 };
  }
  return null;
};

const scaleOf = (region) => (region.log ? Math.log : (x) => x);

const sizeOf = (region) => (region.kind === "grid" ? region.shape : [1, region.x.length]);

// What stands at a spot: the words, and the box to mark, as fractions of the picture.
const describe = ({ region, column, row }) => {
  const [left, top, right, bottom] = region.box;
  const place = (l, t, w, h) => [left + l * (right - left), top + t * (bottom - top), w * (right - left), h * (bottom - top)];
  if (region.kind === "grid") {
    const [rows, columns] = region.shape;
    const value = region.values.getFloat32(4 * (row * columns + column), true); // little-endian float32
    return {
      text: `${region.row_name} ${region.rows[row]}, ${region.column_name} ${region.columns[column]}: ${short(value)}`,
      mark: place(column / columns, row / rows, 1 / columns, 1 / rows),
    };
  }
  const scale = scaleOf(region);
  const [low, high] = region.limits.map(scale);
  const x = region.x[column];
  const name = region.log ? Number(x.toPrecision(3)) : x;
  let text = `${region.x_name} ${name}: ${region.lines.map(([name, y]) => `${name} ${short(y[column])}`).join(", ")}`;
  if (region.points) {
    const [keys, values] = region.points;
    const key = nearest(keys, x);
    text += `; nearest key ${keys[key]}, value ${short(values[key])}`;
  }
  return { text, mark: place((scale(x) - low) / (high - low), 0, 0, 1) };
};

// Where an arrow key leads: along a line or over a map; up and down on a line go to the next panel.
const step = (regions, spot, [right, down]) => {
  const [rows, columns] = sizeOf(spot.region);
  if (down && rows === 1) {
    const region = regions[clamp(regions.indexOf(spot.region) + down, 0, regions.length - 1)];
    return region === spot.region ? spot : { region, column: Math.floor(sizeOf(region)[1] / 2), row: 0 };
  }
  return { ...spot, column: clamp(spot.column + right, 0, columns - 1), row: clamp(spot.row + down, 0, rows - 1) };
};

// The sliders of ipywidgets have a label beside them but no name; give them one for screen readers.
const nameSliders = (explorer) => {
  for (const handle of explorer.querySelectorAll(".noUi-handle:not([aria-label])")) {
    const label = handle.closest(".widget-inline-hbox")?.querySelector(".widget-label");
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
  stage.setAttribute("role", "group");
  stage.setAttribute("aria-label", words.help);
  const image = make("img", "course-picture-image", stage);
  const mark = make("div", "course-picture-mark", stage);
  const tip = make("div", "course-picture-tip", stage);
  tip.setAttribute("role", "status");
  mark.hidden = tip.hidden = true;
  const bar = make("div", "course-picture-bar", frame);
  make("span", "course-picture-help", bar).textContent = words.help;
  for (const kind of ["png", "svg"]) {
    const button = make("button", "course-picture-save", bar);
    button.type = "button";
    button.textContent = words[kind];
    button.onclick = () =>
      kind === "png"
        ? download(model.get("png"), "image/png", `${model.get("name")}.png`)
        : model.send({ wanted: "svg" });
  }

  let spot = null; // where the reader looks
  const point = () => {
    mark.hidden = tip.hidden = !spot;
    if (!spot) return (tip.textContent = "");
    const { text, mark: box } = describe(spot);
    const [left, top, width, height] = box.map((fraction) => `${100 * fraction}%`);
    Object.assign(mark.style, { left, top, width, height });
    if (tip.textContent !== text) tip.textContent = text;
    const [x, y] = [box[0] + box[2], box[1] + box[3] / 2];
    const onTheRight = x > 0.55;
    tip.style.left = onTheRight ? "auto" : `calc(${100 * x}% + 10px)`;
    tip.style.right = onTheRight ? `calc(${100 * (1 - box[0])}% + 10px)` : "auto";
    tip.style.top = `calc(${100 * y}% + 8px)`;
  };
  const lookAt = (found) => {
    spot = found;
    point();
  };
  stage.onpointermove = (event) => {
    const box = image.getBoundingClientRect();
    const [x, y] = [(event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height];
    lookAt(locate(model.get("hover"), x, y));
  };
  stage.onpointerleave = () => lookAt(null);
  stage.onblur = () => lookAt(null);
  stage.onkeydown = (event) => {
    const arrow = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (!arrow && event.key !== "Escape") return;
    event.preventDefault();
    event.stopPropagation(); // the notebook would otherwise move to another cell
    const regions = model.get("hover");
    if (!arrow) return lookAt(null);
    if (spot) return lookAt(step(regions, spot, arrow));
    const [rows, columns] = sizeOf(regions[0]);
    lookAt({ region: regions[0], column: Math.floor(columns / 2), row: Math.floor(rows / 2) });
  };

  let [shown, coming] = [null, null]; // addresses of pictures
  const swap = () => {
    const address = URL.createObjectURL(new Blob([model.get("png")], { type: "image/png" }));
    if (coming) URL.revokeObjectURL(coming); // it was overtaken before it was shown
    coming = address;
    image.onload = () => {
      if (shown) URL.revokeObjectURL(shown);
      [shown, coming] = [address, null];
    };
    image.src = address;
    image.alt = model.get("summary");
    image.style.width = `${model.get("width")}px`;
    image.style.aspectRatio = `${model.get("width")} / ${model.get("height")}`;
    if (spot) {
      const placeOf = (region) => [region.kind, ...region.box, ...sizeOf(region)].join();
      const region = model.get("hover").find((region) => placeOf(region) === placeOf(spot.region));
      lookAt(region ? { ...spot, region } : null);
    }
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
    for (const address of [shown, coming]) if (address) URL.revokeObjectURL(address);
  };
};

export default { render };
