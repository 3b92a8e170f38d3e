// The exact values of a picture: which spot a pointer or an arrow key selects, and what is said of it.

const short = (number) => {
  if (!Number.isFinite(number)) return "–"; // no value here
  return Math.abs(number) < 1e-9 ? "0" : String(Number(number.toPrecision(4)));
};

// A share of 1, such as a weight: no digits that the words beside it round away.
const asShare = (number) => (number !== 0 && Math.abs(number) < 0.00005 ? "<0.0001" : number.toFixed(4));

const clamp = (number, low, high) => Math.min(high, Math.max(low, number));

const nearest = (numbers, wanted) =>
  numbers.reduce((best, x, i) => (Math.abs(x - wanted) < Math.abs(numbers[best] - wanted) ? i : best), 0);

// A spot is a region of the picture (an entry of Picture.hover) with a column, and a row in a map.
// Coordinates are fractions of the picture, from its top left corner. The names of rows and columns belong to a map whose
// cells can be chosen: they stand for the largest number of their row or column.
const locate = (regions, x, y) => {
  for (const region of regions) {
    const [left, top, right, bottom] = region.box;
    const [outerLeft, outerBottom] = region.labels ?? [left, bottom];
    const [isRow, isColumn] = [x < left, y > bottom];
    if (x < outerLeft || x > right || y < top || y > outerBottom || (isRow && isColumn)) continue;
    const [across, down] = [(x - left) / (right - left), (y - top) / (bottom - top)];
    if (region.kind === "grid") {
      const [rows, columns] = region.shape;
      const [column, row] = [Math.min(columns - 1, Math.floor(across * columns)), Math.min(rows - 1, Math.floor(down * rows))];
      if (isRow) return { region, row, column: largest(region, columns, (n) => [row, n]), side: "row" };
      if (isColumn) return { region, column, row: largest(region, rows, (n) => [n, column]), side: "column" };
      return { region, column, row };
    }
    const [low, high] = region.limits.map(scaleOf(region));
    return { region, column: nearest(region.x.map(scaleOf(region)), low + across * (high - low)), row: 0 };
  }
  return null;
};

const valueAt = (region, row, column) => region.values.getFloat32(4 * (row * region.shape[1] + column), true); // little-endian

const largest = (region, count, at) =>
  [...Array(count).keys()].reduce((best, n) => (valueAt(region, ...at(n)) > valueAt(region, ...at(best)) ? n : best), 0);

// What a click on a spot sets: control → value.
const choicesOf = ({ region, row, column, side }) => {
  const { chooses, first = [0, 0], sets = {}, column_sets: columnSets } = region;
  if (!chooses) return {};
  const [byRow, byColumn] = chooses;
  const others = side === "column" && columnSets ? columnSets[1] : sets;
  const names = side === "row" ? [byRow, null] : side === "column" ? [null, columnSets?.[0] ?? byColumn] : [byRow, byColumn];
  const places = [row + first[0], column + first[1]];
  const controls = names.map((name, n) => [name, places[n]]).filter(([name]) => name);
  return controls.length ? { ...others, ...Object.fromEntries(controls) } : {};
};

const scaleOf = (region) => (region.log ? Math.log : (x) => x);

const sizeOf = (region) => (region.kind === "grid" ? region.shape : [1, region.x.length]);

// The text of a spot, and the box to mark, as fractions of the picture.
const describe = ({ region, column, row, side }) => {
  const [left, top, right, bottom] = region.box;
  const place = (l, t, w, h) => [left + l * (right - left), top + t * (bottom - top), w * (right - left), h * (bottom - top)];
  if (region.kind === "grid") {
    const [rows, columns] = region.shape;
    const value = valueAt(region, row, column);
    const says = region.texts ? ` (${region.text} ${region.texts[row][column]})` : "";
    let mark = place(column / columns, row / rows, 1 / columns, 1 / rows);
    if (side === "row") mark = [region.labels[0], mark[1], left - region.labels[0], mark[3]];
    if (side === "column") mark = [mark[0], bottom, mark[2], region.labels[1] - bottom];
    const number = region.share && Number.isFinite(value) ? asShare(value) : short(value);
    return { text: `${region.row_name} ${region.rows[row]}, ${region.column_name} ${region.columns[column]}: ${number}${says}`, mark };
  }
  const scale = scaleOf(region);
  const [low, high] = region.limits.map(scale);
  const x = region.x[column];
  const whole = Number.isInteger(x) && x < 1e6; // a length, a number of tokens
  const name = region.log && !whole ? Number(x.toPrecision(3)) : x;
  let text = `${region.x_name} ${name}: ${region.lines.map(([name, y]) => `${name} ${short(y[column])}`).join(", ")}`;
  if (region.points) {
    const [keys, values] = region.points;
    const key = nearest(keys, x);
    text += `; nearest key ${keys[key]}, value ${short(values[key])}`;
  }
  return { text, mark: place((scale(x) - low) / (high - low), 0, 0, 1) };
};

// Where an arrow key leads: along a line or over a map; up and down on a line go to the next panel, and so do left and
// right from the edge of a map.
const step = (regions, spot, [right, down]) => {
  const [rows, columns] = sizeOf(spot.region);
  const beyond = spot.region.kind === "grid" && (spot.column + right < 0 || spot.column + right >= columns);
  const next = beyond ? regions[regions.indexOf(spot.region) + right] : null;
  if (next?.kind === "grid") {
    const [nextRows, nextColumns] = sizeOf(next);
    const row = Math.min(nextRows - 1, Math.floor(((spot.row + 0.5) / rows) * nextRows));
    return { region: next, column: right > 0 ? 0 : nextColumns - 1, row };
  }
  if (down && rows === 1) {
    const region = regions[clamp(regions.indexOf(spot.region) + down, 0, regions.length - 1)];
    return region === spot.region ? spot : { region, column: Math.floor(sizeOf(region)[1] / 2), row: 0 };
  }
  return { region: spot.region, column: clamp(spot.column + right, 0, columns - 1), row: clamp(spot.row + down, 0, rows - 1) };
};
