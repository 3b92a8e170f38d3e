// Compare: pin the picture as it is now beside the live one.

const makeCompare = (frame, row, stage, image, model, button, flip, words, make, refit) => {
  let [pinned, caption, before] = [null, null, ""];
  // Of the pinned picture, what is not as in the live one.
  const differ = () => {
    if (!pinned) return;
    const now = new Set(model.get("summary").split("\n"));
    caption.textContent = before.split("\n").filter((line) => !now.has(line)).map((line) => line.trim()).join("; ");
  };
  const live = make("p", "course-picture-caption", stage);
  stage.prepend(live);
  live.textContent = words.live;
  const turn = (flipped) => {
    frame.classList.toggle("course-picture-flipped", flipped);
    flip.textContent = flipped ? words.show_live : words.show_pinned;
  };
  flip.onclick = () => turn(!frame.classList.contains("course-picture-flipped"));
  const moved = () => (turn(false), differ());
  const label = () => {
    turn(false);
    button.textContent = pinned ? words.unpin : words.pin;
    live.hidden = !pinned;
  };
  button.onclick = () => {
    if (pinned) {
      URL.revokeObjectURL(pinned.querySelector("img").src);
      pinned.remove();
      pinned = null;
    } else {
      pinned = make("figure", "course-picture-pinned", row);
      make("p", "course-picture-caption", pinned).textContent = words.pinned;
      const strips = make("div", "course-picture-strips", pinned);
      const address = URL.createObjectURL(new Blob([model.get("png")], { type: "image/png" }));
      const copies = makeStrips(strips, model.get("cuts"), make, "course-picture-pinned-image");
      show(copies, address, model.get("maps"));
      copies[0].image.alt = image.alt;
      before = image.alt;
      caption = make("figcaption", "course-picture-help", pinned);
      differ();
    }
    label();
    refit();
  };
  label();
  model.on("change:summary", moved);
  return () => model.off("change:summary", moved);
};
