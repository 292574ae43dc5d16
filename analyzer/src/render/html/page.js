"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const tip = document.getElementById("tip");
  const root = document.documentElement;

  // Theme: the system's, until the button says otherwise.
  document.getElementById("theme").addEventListener("click", () => {
    const system = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
    const now = root.dataset.theme || system;
    root.dataset.theme = now === "dark" ? "light" : "dark";
  });

  // Tables sort by what stands behind their words.
  const key = (row, column) => {
    const cell = row.cells[column];
    return cell.dataset.v === undefined ? cell.textContent : BigInt(cell.dataset.v);
  };
  for (const button of document.querySelectorAll("th button")) {
    button.addEventListener("click", () => {
      const head = button.closest("th");
      const body = button.closest("table").tBodies[0];
      const column = head.cellIndex;
      const number = head.classList.contains("number");
      const before = head.getAttribute("aria-sort");
      // Numbers begin with the greatest, words with the first.
      const rising = before === "none" ? !number : before === "descending";
      for (const other of head.parentNode.cells) other.setAttribute("aria-sort", "none");
      head.setAttribute("aria-sort", rising ? "ascending" : "descending");
      const rows = [...body.rows].map((row) => [key(row, column), row]);
      const order = (one, other) => (typeof one === "bigint" && typeof other === "bigint"
        ? (one < other ? -1 : Number(one > other))
        : String(one).localeCompare(String(other)));
      rows.sort((one, other) => (rising ? 1 : -1) * order(one[0], other[0]));
      body.append(...rows.map((row) => row[1]));
    });
  }

  const bytes = (value) => {
    const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let unit = 0;
    while (value >= 1024 && unit < units.length - 1) {
      value /= 1024;
      unit += 1;
    }
    return unit === 0 ? `${value} B` : `${value.toFixed(2)} ${units[unit]}`;
  };
  const time = (nanos) => {
    for (const [unit, name] of [[1e9, "s"], [1e6, "ms"], [1e3, "us"]]) {
      if (Math.abs(nanos) >= unit) return `${(nanos / unit).toFixed(3)} ${name}`;
    }
    return `${nanos} ns`;
  };

  // The last bucket that begins at or before a moment.
  const bucketOf = (moment) => {
    let [low, high] = [0, data.edges.length - 2];
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if (data.edges[middle] <= moment) low = middle; else high = middle - 1;
    }
    return low;
  };

  const line = (name, value, ink) => {
    const row = document.createElement("div");
    const swatch = document.createElement("i");
    if (ink) swatch.style.background = `var(--${ink})`;
    const words = document.createElement("span");
    words.textContent = name;
    const amount = document.createElement("b");
    amount.textContent = value;
    row.append(swatch, words, amount);
    return row;
  };

  const tellBucket = (place, bucket) => {
    const head = document.createElement("p");
    head.textContent = `${time(data.edges[bucket])} to ${time(data.edges[bucket + 1])}`;
    const rows = [];
    for (const index of place.series) {
      const series = data.series[index];
      if (!series) continue;
      const [most, least] = [series.max[bucket], series.min[bucket]];
      const range = most === least ? bytes(most) : `${bytes(least)} to ${bytes(most)}`;
      rows.push(line(series.name, range, series.ink));
      for (const part of series.parts) {
        if (part.max[bucket] > 0) rows.push(line(part.name, bytes(part.max[bucket]), part.ink));
      }
    }
    const calls = data.calls[bucket] || [0, 0, 0];
    ["alloc", "free", "copies and sets"].forEach((name, index) => {
      if (calls[index] > 0) rows.push(line(`time in ${name}`, time(calls[index])));
    });
    tip.replaceChildren(head, ...rows);
  };

  const show = (target, x, y) => {
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    const left = x + 16 + box.width > innerWidth ? x - box.width - 16 : x + 16;
    const top = Math.min(y + 12, innerHeight - box.height - 4);
    tip.style.left = `${Math.max(4, left)}px`;
    tip.style.top = `${Math.max(4, top)}px`;
  };

  const cursors = new Map();
  // Marks a part of a place, in the picture's own pixels.
  const point = (target, x, y, width, height) => {
    let cursor = cursors.get(target);
    if (!cursor) {
      cursor = document.createElementNS("http://www.w3.org/2000/svg", "rect");
      cursor.setAttribute("class", "cursor");
      target.before(cursor);
      cursors.set(target, cursor);
    }
    const sides = { x, y, width, height };
    for (const side of Object.keys(sides)) cursor.setAttribute(side, sides[side]);
  };

  const tell = (target, place, index) => {
    const number = (name) => Number(target.getAttribute(name));
    const [x, y, width, height] = ["x", "y", "width", "height"].map(number);
    const strips = place.rows || place.columns;
    if (strips) {
      const strip = strips[index];
      tip.textContent = strip[2];
      if (place.rows) point(target, x, strip[0], width, strip[1]);
      else point(target, strip[0], y, strip[1], height);
    } else {
      tellBucket(place, index);
      const span = place.to - place.from;
      const at = (edge) => x + Math.min(1, Math.max(0, (edge - place.from) / span)) * width;
      const left = at(data.edges[index]);
      point(target, left, y, Math.max(1, at(data.edges[index + 1]) - left), height);
    }
    target.dataset.index = index;
  };

  const count = (place) => (place.rows || place.columns || data.edges.slice(1)).length;

  const found = (target, place, event) => {
    const box = target.getBoundingClientRect();
    const across = (event.clientX - box.left) / Math.max(1, box.width);
    const down = (event.clientY - box.top) / Math.max(1, box.height);
    const number = (name) => Number(target.getAttribute(name));
    if (place.rows || place.columns) {
      const at = place.rows
        ? number("y") + down * number("height") : number("x") + across * number("width");
      return (place.rows || place.columns).findIndex(
        (strip) => at >= strip[0] && at < strip[0] + strip[1]);
    }
    return bucketOf(place.from + across * (place.to - place.from));
  };

  const hide = (target) => {
    tip.hidden = true;
    const cursor = cursors.get(target);
    if (cursor) cursor.remove();
    cursors.delete(target);
  };

  for (const target of document.querySelectorAll("rect.hover")) {
    const place = data.places[target.dataset.hover];
    target.setAttribute("aria-label", "values: point, or use the arrow keys");
    target.addEventListener("pointermove", (event) => {
      const index = found(target, place, event);
      if (index < 0 || index >= count(place)) return hide(target);
      tell(target, place, index);
      return show(target, event.clientX, event.clientY);
    });
    target.addEventListener("pointerleave", () => hide(target));
    target.addEventListener("blur", () => hide(target));
    target.addEventListener("keydown", (event) => {
      const steps = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 };
      if (event.key === "Escape") return hide(target);
      if (!(event.key in steps) || count(place) === 0) return undefined;
      event.preventDefault();
      const before = target.dataset.index === undefined ? -1 : Number(target.dataset.index);
      const index = Math.min(count(place) - 1, Math.max(0, before + steps[event.key]));
      tell(target, place, index);
      const box = (cursors.get(target) || target).getBoundingClientRect();
      return show(target, box.right, box.top);
    });
  }
})();
