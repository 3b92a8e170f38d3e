// Pointing at a picture, or moving over it by arrow keys, reads and chooses its exact values.

const make = (tag, className, parent) => {
  const node = document.createElement(tag);
  node.className = className;
  parent.append(node);
  return node;
};

// The spot under the pointer or chosen by arrow keys: its mark, and a tip with its exact value.
const makePointer = (stage, strips, model) => {
  const mark = make("div", "course-picture-mark", strips[0].sheet);
  const tip = make("div", "course-picture-tip", stage);
  tip.setAttribute("role", "status");
  mark.hidden = tip.hidden = true;
  let spot = null; // the selected spot
  const place = (box) => {
    const [left, top, width, height] = box.map((fraction) => `${100 * fraction}%`);
    Object.assign(mark.style, { left, top, width, height });
    const middle = box[0] + box[2] / 2;
    const { sheet } = strips.find(({ right }) => middle <= right) ?? strips[0];
    sheet.append(mark);
    const [around, inside] = [stage.getBoundingClientRect(), mark.getBoundingClientRect()];
    const onTheRight = inside.right - around.left > 0.55 * around.width;
    tip.style.left = onTheRight ? "auto" : `${inside.right - around.left + 10}px`;
    tip.style.right = onTheRight ? `${around.right - inside.left + 10}px` : "auto";
    tip.style.top = `${(inside.top + inside.bottom) / 2 - around.top + 8}px`;
  };
  const lookAt = (found) => {
    spot = found;
    stage.classList.toggle("course-picture-chooses", Boolean(spot) && Object.keys(choicesOf(spot)).length > 0);
    mark.hidden = tip.hidden = !spot;
    if (!spot) return (tip.textContent = "");
    const { text, mark: box } = describe(spot);
    if (tip.textContent !== text) tip.textContent = text;
    place(box);
  };
  // Set the controls that the row and the column of the spot stand for.
  const choose = () => {
    const controls = spot ? choicesOf(spot) : {};
    if (!Object.keys(controls).length) return;
    model.set("chosen", { controls, before: (model.get("chosen").before ?? -1) + 1 });
    model.save_changes();
  };
  stage.onpointermove = (event) => {
    const strip = strips.find(({ sheet }) => sheet.parentNode.contains(event.target));
    if (!strip) return lookAt(null);
    const box = strip.image.getBoundingClientRect();
    const [x, y] = [(event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height];
    lookAt(locate(model.get("hover"), x, y));
  };
  stage.onclick = (event) => {
    stage.onpointermove(event);
    choose();
  };
  stage.onpointerleave = stage.onblur = () => lookAt(null);
  stage.onkeydown = (event) => {
    const arrow = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    const regions = model.get("hover");
    if (arrow && regions.length) {
      event.preventDefault();
      const [rows, columns] = sizeOf(regions[0]);
      const [row, column] = regions[0].at ?? [Math.floor(rows / 2), Math.floor(columns / 2)];
      lookAt(spot ? step(regions, spot, arrow) : { region: regions[0], column, row });
      if (!spot.region.acts) choose();
    } else if (["Enter", " "].includes(event.key) && spot?.region.acts) {
      event.preventDefault();
      choose();
    } else if (event.key === "Escape" && spot) {
      event.stopPropagation(); // a second Escape leaves the picture
      lookAt(null);
    }
  };
  return () => {
    if (!spot) return;
    const placeOf = (region) => [region.kind, ...region.box, ...sizeOf(region)].join();
    const region = model.get("hover").find((one) => placeOf(one) === placeOf(spot.region));
    lookAt(region ? { ...spot, region } : null);
  };
};
