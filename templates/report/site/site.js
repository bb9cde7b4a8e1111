// What scripts add to the pages: search, the drawn graph, column lineage, plots, copying.
// Every page can be read without them. They load files of this folder only, and only when needed.
"use strict";
(() => {
  const root = document.documentElement;
  const base = root.dataset.base;
  const MOST = 80; // so many nodes are drawn at once, unless more are asked for
  const NARROW = 500; // pixels of a telephone
  const FONT = 12, HEIGHT = 26, READABLE = 0.9; // of the boxes of a drawing, and how small they get

  // --- Elements and files ---

  function make(tag, attributes = {}, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
      else if (value !== undefined && value !== false) element.setAttribute(name, value === true ? "" : value);
    }
    element.append(...children);
    return element;
  }

  const loaded = new Map();
  function script(path) {
    if (!loaded.has(path)) {
      loaded.set(path, new Promise((resolve, reject) => {
        const element = make("script", { src: base + path, onload: resolve, onerror: () => reject(new Error(`${path} cannot be loaded`)) });
        document.head.append(element);
      }));
    }
    return loaded.get(path);
  }

  const parts = {};
  window.odfbuildData = (kind, number, rows) => { (parts[kind] ??= [])[number - 1] = rows; };
  async function data(kind) {
    const numbers = Array.from({ length: Number(root.dataset.shards) }, (_, n) => n + 1);
    await Promise.all(numbers.map((n) => script(`data/${kind}-${n}.js`)));
    return parts[kind].flat();
  }

  const pageOf = (name) => `${base}datasets/${encodeURIComponent(name.replace("/", "~"))}.html`;

  // --- Search ---

  function search(box) {
    const input = box.querySelector("input"), list = box.querySelector("ul");
    let index = null, rows = [], chosen = -1;
    async function prepare() {
      const [found] = await Promise.all([data("search"), script("assets/minisearch.js")]);
      if (index) return;
      rows = found;
      index = new MiniSearch({
        fields: ["name", "about", "columns", "owners", "tags"],
        // Names are found whole and by their parts: `wind_gust`, `wind`, `gust`.
        tokenize: (text) => text.split(/\s+/).flatMap((word) => [word, ...word.split(/\p{P}+/u)]).filter((word, n, all) => word && word !== all[n - 1]),
        searchOptions: { tokenize: (text) => text.split(/\s+/).filter(Boolean), boost: { name: 4, tags: 2 }, prefix: true, fuzzy: (term) => (term.length > 4 ? 0.2 : false), combineWith: "AND" },
      });
      index.addAll(rows.map(([name, about, columns, owners, tags], id) => ({ id, name, about, columns, owners, tags })));
    }
    function show(results) {
      chosen = -1;
      input.removeAttribute("aria-activedescendant");
      list.replaceChildren(...results.slice(0, 30).map(({ id, match }, n) => {
        const [name, about, columns, owners] = rows[id];
        const words = Object.keys(match);
        const column = columns.split(" ").find((each) => words.some((word) => each.toLowerCase().includes(word)));
        const why = [about, column && `column ${column}`, owners].filter(Boolean).join(" · ");
        return make("li", { role: "option", id: `found-${n}`, "aria-selected": "false", "data-name": name, onmousedown: (event) => { event.preventDefault(); location.href = pageOf(name); } }, name, make("small", {}, why));
      }));
      if (!results.length) list.append(make("li", { role: "option", "aria-selected": "false", "aria-disabled": "true" }, "Nothing found"));
      list.hidden = !input.value.trim();
      input.setAttribute("aria-expanded", String(!list.hidden));
    }
    async function look() {
      await prepare();
      show(input.value.trim() ? index.search(input.value) : []);
    }
    function hide() { list.hidden = true; input.setAttribute("aria-expanded", "false"); }
    function choose(step) {
      const options = [...list.querySelectorAll("[data-name]")];
      if (!options.length) return;
      chosen = (chosen + step + options.length) % options.length;
      options.forEach((each, n) => each.setAttribute("aria-selected", String(n === chosen)));
      options[chosen].scrollIntoView({ block: "nearest" });
      input.setAttribute("aria-activedescendant", options[chosen].id);
    }
    input.addEventListener("focus", prepare, { once: true });
    input.addEventListener("input", look);
    input.addEventListener("blur", hide);
    input.addEventListener("keydown", (event) => {
      if (event.key === "Escape") hide();
      else if (event.key === "ArrowDown" || event.key === "ArrowUp") { event.preventDefault(); choose(event.key === "ArrowDown" ? 1 : -1); }
      else if (event.key === "Enter") {
        const option = list.querySelectorAll("[data-name]")[Math.max(chosen, 0)];
        if (option && !list.hidden) location.href = pageOf(option.dataset.name);
      }
    });
    document.addEventListener("keydown", (event) => {
      if (event.key === "/" && !/^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement.tagName)) { event.preventDefault(); input.focus(); }
    });
    box.hidden = false;
  }

  // --- Drawing ---

  function style() {
    const css = getComputedStyle(root);
    const color = (name) => css.getPropertyValue(`--${name}`).trim();
    const tones = ["good", "busy", "bad", "plain"].map((tone) => ({ selector: `node.${tone}`, style: { "border-color": color(tone) } }));
    return [
      { selector: "node", style: { label: "data(label)", shape: "round-rectangle", width: "data(width)", height: HEIGHT, "background-color": color("back"), "border-width": 2, "border-color": color("plain"), color: color("text"), "font-size": FONT, "font-family": "ui-monospace, monospace", "text-valign": "center", "text-halign": "center" } },
      { selector: "node.group", style: { "border-style": "double", "border-width": 4 } },
      ...tones,
      { selector: "node.busy", style: { "border-style": "dashed" } },
      { selector: "node.bad", style: { "border-width": 4 } },
      { selector: "node.here", style: { "background-color": color("line"), "font-weight": "bold" } },
      { selector: "node:parent", style: { "background-color": color("soft"), "border-width": 1, "border-color": color("line"), "text-valign": "top", "text-halign": "center", padding: 10, label: "data(label)", color: color("dim") } },
      { selector: "node:selected", style: { "border-color": color("accent"), "border-width": 4 } },
      { selector: "edge", style: { width: 1.5, "line-color": color("dim"), "target-arrow-color": color("dim"), "target-arrow-shape": "triangle", "curve-style": "straight", "source-endpoint": "50% 0%", "target-endpoint": "-50% 0%", "arrow-scale": 0.8 } },
      { selector: "edge[weights]", style: { "curve-style": "round-segments", "edge-distances": "node-position", "segment-weights": "data(weights)", "segment-distances": "data(distances)", "segment-radii": "data(radii)" } },
      { selector: "edge.filter", style: { "line-style": "dashed" } },
      { selector: ".faded", style: { opacity: 0.15 } },
    ];
  }

  // Boxes stand in columns. An edge crosses the columns between its ends level, where dagre leaves
  // room for it, and changes its height between columns only: so it runs through no box.
  function arrange(elements, gap) {
    const frames = new Set(elements.map(({ data }) => data.parent));
    const ends = elements.filter(({ data }) => data.source === undefined && !frames.has(data.id));
    const edges = elements.filter(({ data }) => data.source !== undefined);
    const layout = new dagre.graphlib.Graph({ compound: true, multigraph: true });
    layout.setGraph({ rankdir: "LR", nodesep: frames.size > 1 ? 20 : 12, edgesep: 12, ranksep: gap }); // frames have titles
    for (const { data } of elements) if (frames.has(data.id)) layout.setNode(data.id, {});
    for (const { data } of ends) {
      layout.setNode(data.id, { width: data.width, height: HEIGHT });
      if (data.parent !== undefined) layout.setParent(data.id, data.parent);
    }
    edges.forEach(({ data }, n) => layout.setEdge(data.source, data.target, {}, String(n)));
    dagre.layout(layout);
    const columns = new Map(); // half the width of each, by its middle
    for (const { data } of ends) {
      const middle = Math.round(layout.node(data.id).x);
      columns.set(middle, Math.max(columns.get(middle) ?? 0, data.width / 2));
    }
    const half = ({ x }) => { const width = columns.get(Math.round(x)); return width === undefined ? 0 : width + 10; }; // 10: for arrows
    for (const element of ends) {
      const { x, y } = layout.node(element.data.id);
      element.position = { x, y };
    }
    edges.forEach(({ data }, n) => {
      const from = layout.node(data.source), to = layout.node(data.target);
      const between = layout.edge(data.source, data.target, String(n)).points.slice(1, -1);
      const way = [{ x: from.x + half(from), y: from.y }, ...between.flatMap(({ x, y }) => [{ x: x - half({ x }), y }, { x: x + half({ x }), y }]), { x: to.x - half(to), y: to.y }];
      const turns = way.filter((at, k) => k === 0 || at.x !== way[k - 1].x || at.y !== way[k - 1].y);
      // Cytoscape takes places along the line between the middles, and away from it.
      const [dx, dy] = [to.x - from.x, to.y - from.y], far = dx * dx + dy * dy;
      data.weights = turns.map(({ x, y }) => ((x - from.x) * dx + (y - from.y) * dy) / far);
      data.distances = turns.map(({ x, y }) => ((y - from.y) * dx - (x - from.x) * dy) / Math.sqrt(far));
      data.radii = turns.map(() => 10);
    });
  }

  async function drawing(canvas, gap) {
    await script("assets/cytoscape.min.js");
    await script("assets/dagre.min.js");
    const cy = cytoscape({ container: canvas, style: style(), minZoom: 0.1, maxZoom: 3, boxSelectionEnabled: false, autoungrabify: true });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => cy.style(style()));
    const zoom = (by) => cy.zoom({ level: cy.zoom() * by, renderedPosition: { x: canvas.clientWidth / 2, y: canvas.clientHeight / 2 } });
    const keys = {
      ArrowLeft: () => cy.panBy({ x: 40, y: 0 }), ArrowRight: () => cy.panBy({ x: -40, y: 0 }),
      ArrowUp: () => cy.panBy({ x: 0, y: 40 }), ArrowDown: () => cy.panBy({ x: 0, y: -40 }),
      "+": () => zoom(1.25), "-": () => zoom(0.8), 0: () => cy.fit(undefined, 20),
    };
    canvas.addEventListener("keydown", (event) => { if (keys[event.key]) { event.preventDefault(); keys[event.key](); } });
    const buttons = [["Zoom in", "+"], ["Zoom out", "-"], ["Fit", "0"]].map(([text, key]) => make("button", { type: "button", onclick: keys[key] }, text));

    // Text stays readable: what does not fit then is moved to. The canvas is as high as it needs to be.
    function place() {
      const box = cy.elements().boundingBox(), edge = 20;
      const size = { w: canvas.clientWidth - 2 * edge, h: 0.75 * innerHeight - 2 * edge };
      const level = Math.max(READABLE, Math.min(1.2, size.w / box.w, size.h / box.h));
      size.h = Math.max(60, Math.min(size.h, box.h * level));
      canvas.style.height = `${size.h + 2 * edge + 2}px`;
      cy.resize();
      const here = cy.nodes(".here:childless")[0]?.position();
      const start = (axis, from, length, room) => {
        const all = length * level;
        if (all <= room + 1) return edge + (room - all) / 2 - from * level;
        const wanted = here ? edge + room / 2 - here[axis] * level : edge - from * level;
        return Math.min(edge - from * level, Math.max(edge + room - (from + length) * level, wanted));
      };
      cy.viewport({ zoom: level, pan: { x: start("x", box.x1, box.w, size.w), y: start("y", box.y1, box.h, size.h) } });
      return box.w * level > size.w + 1 || box.h * level > size.h + 1;
    }

    // Whether there is more than is seen.
    function draw(elements) {
      cy.elements().remove();
      if (!elements.length) return false;
      arrange(elements, canvas.clientWidth < NARROW ? gap / 2 : gap);
      cy.add(elements);
      return place();
    }
    return { cy, draw, buttons };
  }

  const MOVE = " Drag the drawing to see the rest of it.";
  const short = (text) => { const most = innerWidth < NARROW ? 22 : 36; return text.length > most ? `…${text.slice(1 - most)}` : text; };
  const node = (id, text, classes, more = {}) => ({ data: { id, label: short(text), width: short(text).length * 0.61 * FONT + 18, ...more }, classes });

  function choice(label, options, value, onchange) {
    const select = make("select", { onchange: () => onchange(select.value) }, ...options.map(([key, text]) => make("option", { value: key, selected: String(key) === String(value) }, text)));
    return make("label", {}, label, select);
  }

  // --- The graph of datasets ---

  async function graph(place) {
    const rows = await data("graph");
    const readers = rows.map(() => []);
    rows.forEach((row, n) => row[4].forEach((input) => readers[input].push(n)));
    const numbers = new Map(rows.map((row, n) => [row[0], n]));
    const asked = JSON.parse(place.dataset.graph);
    const wanted = new URLSearchParams(location.search).get("focus") ?? asked.focus;
    const state = { focus: numbers.get(wanted) ?? null, hops: asked.hops, direction: "both", by: "none", within: [], unfolded: new Set(), most: MOST };

    const canvas = make("div", { class: "canvas", role: "application", tabindex: "0", "aria-label": "Drawing of the lineage. Arrow keys move it, plus and minus zoom, 0 fits. The same datasets are in the list below." });
    const chosen = make("p", { class: "chosen", "aria-live": "polite" });
    const note = make("p", { class: "dim", role: "status" });
    const list = make("ul");
    const tools = make("div", { class: "tools" });
    const legend = make("div", { class: "legend" });
    place.replaceChildren(tools, note, canvas, chosen, legend, make("details", {}, make("summary", {}, "Drawn datasets as a list"), list));
    const { cy, draw, buttons } = await drawing(canvas, 60);

    const segments = (name) => name.split(/[./-]/);
    const groupOf = (n) => (state.by === "template" ? rows[n][3] || "no template" : segments(rows[n][0]).slice(0, state.within.length + 1).join("."));
    const everything = () => rows.map((_, n) => n);

    function near(start) {
      const found = new Map([[start, 0]]), queue = [start];
      let more = 0;
      for (let n = queue.shift(); n !== undefined; n = queue.shift()) {
        if (found.get(n) >= state.hops) continue;
        const up = state.direction !== "readers" ? rows[n][4] : [];
        const down = state.direction !== "inputs" ? readers[n] : [];
        for (const each of [...up, ...down]) {
          if (found.has(each)) continue;
          if (found.size >= state.most) { more += 1; continue; }
          found.set(each, found.get(n) + 1);
          queue.push(each);
        }
      }
      return { members: [...found.keys()], more };
    }

    // Templates of which several instances are drawn as one node; the dataset in focus stays itself.
    function folded(members) {
      const counts = new Map();
      if (state.by !== "template" || state.within.length) return counts;
      for (const n of members) if (rows[n][3] && n !== state.focus && !state.unfolded.has(rows[n][3])) counts.set(rows[n][3], (counts.get(rows[n][3]) ?? 0) + 1);
      return new Map([...counts].filter(([, number]) => number > 1));
    }

    function datasets(members) {
      const inside = new Set(members), folds = folded(members);
      const isFolded = (n) => n !== state.focus && folds.has(rows[n][3]);
      const id = (n) => (isFolded(n) ? `f:${rows[n][3]}` : `d:${n}`);
      const whole = members.filter((n) => !isFolded(n));
      const isFramed = (n) => state.by === "prefix" || (state.by === "template" && !state.within.length && state.unfolded.has(rows[n][3]));
      const frames = [...new Set(whole.filter(isFramed).map(groupOf))].map((each) => ({ data: { id: `g:${each}`, label: each, width: 10 } }));
      const groups = [...folds].map(([template, number]) => node(`f:${template}`, `${template.split("/").at(-1)} (${number.toLocaleString("en")})`, "group", { template, number: undefined }));
      const nodes = whole.map((n) => node(`d:${n}`, rows[n][0], `${rows[n][2]}${n === state.focus ? " here" : ""}`, { number: n, parent: isFramed(n) ? `g:${groupOf(n)}` : undefined }));
      const links = new Map();
      for (const n of members) for (const i of rows[n][4]) if (inside.has(i) && id(i) !== id(n)) links.set(`${id(i)}\0${id(n)}`, { data: { source: id(i), target: id(n) } });
      return [...frames, ...groups, ...nodes, ...links.values()];
    }

    function groups(all) {
      const counts = new Map(), links = new Map();
      all.forEach((n) => counts.set(groupOf(n), (counts.get(groupOf(n)) ?? 0) + 1));
      const drawn = new Map([...counts].sort((a, b) => b[1] - a[1]).slice(0, state.most));
      all.forEach((n) => rows[n][4].forEach((i) => {
        const pair = [groupOf(i), groupOf(n)];
        if (pair[0] !== pair[1] && drawn.has(pair[0]) && drawn.has(pair[1])) links.set(pair.join("\0"), pair);
      }));
      const nodes = [...drawn].map(([name, number]) => node(`g:${name}`, `${name} (${number.toLocaleString("en")})`, "group", { group: name }));
      const edges = [...links.values()].map(([a, b]) => ({ data: { source: `g:${a}`, target: `g:${b}` } }));
      return { elements: [...nodes, ...edges], left: counts.size - drawn.size, groups: [...drawn.keys()] };
    }

    function inGroup() {
      const prefix = state.within.at(-1);
      if (prefix === undefined) return everything();
      if (state.by === "template") return everything().filter((n) => (rows[n][3] || "no template") === prefix);
      return everything().filter((n) => segments(rows[n][0]).slice(0, state.within.length).join(".") === prefix);
    }

    function redraw() {
      chosen.replaceChildren();
      let members = [], text, cut;
      if (state.focus !== null) {
        const found = near(state.focus);
        members = found.members;
        text = `${members.length} datasets within ${state.hops} ${state.hops === 1 ? "hop" : "hops"} of ${rows[state.focus][0]}${found.more ? `; ${found.more} more are not drawn` : ""}`;
        cut = draw(datasets(members));
      } else {
        const all = inGroup(), by = state.by, folds = folded(all);
        const kept = all.length - [...folds.values()].reduce((sum, each) => sum + each - 1, 0);
        if (folds.size && kept <= state.most) members = all;
        if (all.length > state.most && by === "none") state.by = "prefix";
        const found = !members.length && all.length > state.most && !(state.by === "template" && state.within.length) ? groups(all) : null;
        if (found && found.groups.length < Math.min(all.length, state.most)) {
          text = `${all.length.toLocaleString("en")} datasets in ${found.groups.length} groups${found.left ? `; ${found.left} smaller groups are not drawn` : ""}. Choose a group to open it.`;
          cut = draw(found.elements);
        } else {
          members = members.length ? members : all.slice(0, state.most);
          text = members.length < all.length ? `${members.length} of ${all.length.toLocaleString("en")} datasets. Search for one to see its lineage.` : `${members.length} datasets`;
          if (found) state.by = "none";
          cut = draw(datasets(members));
        }
        state.by = by;
      }
      if (cy.nodes("[template]").length) text += ". Choose a template to see its instances";
      note.textContent = `${text}${/\.$/.test(text) ? "" : "."}${cut ? MOVE : ""}`;
      list.replaceChildren(...(members.length ? members : []).map((n) => make("li", {}, make("a", { href: pageOf(rows[n][0]) }, rows[n][0]), `: ${rows[n][1]}`)),
        ...cy.nodes("[group]").map((each) => make("li", {}, make("button", { type: "button", onclick: () => open(each.data("group")) }, each.data("label")))));
      const statuses = new Map(members.map((n) => [rows[n][1], rows[n][2]]));
      legend.replaceChildren(...[...statuses].map(([status, tone]) => make("span", { class: `status ${tone}` }, status)));
      controls();
    }

    function unfold(template) {
      if (state.focus === null && rows.filter((row) => row[3] === template).length > state.most) { open(template); return; }
      state.unfolded.add(template);
      redraw();
    }
    function open(group) { state.within.push(group); redraw(); }
    function focus(n) { state.focus = n; state.within = []; redraw(); }

    function controls() {
      const set = (key) => (value) => { state[key] = /^\d+$/.test(value) ? Number(value) : value; if (key === "by") { state.within = []; state.unfolded.clear(); } redraw(); };
      const focused = state.focus !== null;
      const back = state.within.length && !focused ? [make("button", { type: "button", onclick: () => { state.within.pop(); redraw(); } }, "Back to the groups")] : [];
      const fold = state.unfolded.size ? [make("button", { type: "button", onclick: () => { state.unfolded.clear(); redraw(); } }, "Fold templates")] : [];
      tools.replaceChildren(
        ...(focused ? [choice("Hops", [1, 2, 3, 4, 6].map((n) => [n, n]), state.hops, set("hops")), choice("Direction", [["both", "inputs and readers"], ["inputs", "inputs"], ["readers", "readers"]], state.direction, set("direction"))] : []),
        choice("Group by", [["none", "nothing"], ["prefix", "name prefix"], ["template", "template"]], state.by, set("by")),
        choice("Draw at most", [[MOST, MOST], [200, 200], [500, 500]], state.most, set("most")),
        ...buttons, ...back, ...fold,
        ...(focused ? [make("button", { type: "button", onclick: () => focus(null) }, "Whole graph")] : []));
    }

    cy.on("tap", "node", ({ target }) => {
      const { number, group, template } = target.data();
      if (group !== undefined) { open(group); return; }
      if (template !== undefined) { unfold(template); return; }
      if (number === undefined) return;
      const [name, status, tone] = rows[number];
      const near = target.closedNeighborhood().union(target.predecessors()).union(target.successors());
      cy.elements().addClass("faded");
      near.union(near.parents()).removeClass("faded");
      chosen.replaceChildren(make("a", { href: pageOf(name) }, name), " ", make("span", { class: `status ${tone}` }, status), " ", make("button", { type: "button", onclick: () => focus(number) }, "Show its lineage"));
    });
    cy.on("tap", (event) => { if (event.target === cy) { cy.elements().removeClass("faded"); chosen.replaceChildren(); } });
    redraw();
  }

  // --- Lineage of columns ---

  async function columns(place) {
    const { name, edges } = JSON.parse(place.dataset.columns);
    const own = [...new Set(edges.flatMap(([a, ac, b, bc]) => [a === name ? ac : null, b === name ? bc : null]).filter(Boolean))];
    const canvas = make("div", { class: "canvas", role: "application", tabindex: "0", "aria-label": "Drawing of the column lineage. The table below has the same content." });
    const chosen = make("p", { class: "chosen", "aria-live": "polite" });
    const tools = make("div", { class: "tools" });
    place.hidden = false;
    place.replaceChildren(tools, canvas, chosen);
    const { cy, draw, buttons } = await drawing(canvas, 110);
    const id = (dataset, column) => `${dataset}\0${column}`;
    function show(column) {
      const drawn = edges.filter(([a, ac, b, bc]) => column === "" || (a === name && ac === column) || (b === name && bc === column)).slice(0, 200);
      const nodes = new Map(), datasets = new Map();
      for (const [a, ac, b, bc] of drawn) {
        for (const [dataset, col] of [[a, ac], [b, bc]]) {
          datasets.set(dataset, { data: { id: dataset, label: dataset, width: 10 } });
          nodes.set(id(dataset, col), node(id(dataset, col), col, dataset === name ? "here" : "plain", { parent: dataset, dataset, column: col }));
        }
      }
      const cut = draw([...datasets.values(), ...nodes.values(), ...drawn.map(([a, ac, b, bc, how]) => ({ data: { source: id(a, ac), target: id(b, bc), how }, classes: how === "copy" ? "" : "filter" }))]);
      chosen.replaceChildren(make("span", { class: "dim" }, `${drawn.length} of ${edges.length} connections. Solid lines copy a value, dashed ones compute with it.${cut ? MOVE : ""}`));
    }
    const computed = edges.find(([, , dataset, , how]) => dataset === name && how !== "copy")?.[3];
    const first = edges.length > 40 ? computed ?? own.at(-1) : "";
    tools.replaceChildren(choice("Column", [...(edges.length > 200 ? [] : [["", "all columns"]]), ...own.map((each) => [each, each])], first, show), ...buttons);
    cy.on("tap", "node", ({ target }) => {
      const { dataset, column } = target.data();
      if (!column) return;
      const path = target.union(target.predecessors()).union(target.successors());
      cy.elements().addClass("faded");
      path.union(path.parents()).removeClass("faded");
      const ways = target.connectedEdges().map((each) => { const from = each.source(), to = each.target(); return `${from.data("dataset")}.${from.data("column")} → ${to.data("dataset")}.${to.data("column")} (${each.data("how")})`; });
      chosen.replaceChildren(make("a", { href: `${pageOf(dataset)}#c-${encodeURIComponent(column)}` }, `${dataset}.${column}`), ` ${ways.join(", ")}`);
    });
    cy.on("tap", (event) => { if (event.target === cy) cy.elements().removeClass("faded"); });
    show(first);
  }

  // --- Plots ---

  const size = (bytes) => { let n = bytes, unit = 0; while (n >= 1000 && unit < 5) { n /= 1000; unit += 1; } return `${n.toLocaleString("en", { maximumFractionDigits: 1 })} ${["bytes", "KB", "MB", "GB", "TB", "PB"][unit]}`; };
  const day = (seconds) => (seconds === null || seconds === undefined ? "" : new Date(seconds * 1000).toISOString().slice(0, 16).replace("T", " "));

  const DAY = 86400;
  const TIMES = [60, 600, 3600, 6 * 3600, DAY / 2, DAY, 2 * DAY, 7 * DAY, 30 * DAY, 90 * DAY, 365 * DAY, 1825 * DAY, 3650 * DAY, 36500 * DAY];

  async function plots(place) {
    const points = JSON.parse(place.dataset.points);
    if (points.length < 2) return;
    await script("assets/uPlot.iife.min.js");
    const css = getComputedStyle(root), color = (name) => css.getPropertyValue(`--${name}`).trim();
    const blocks = points.map((each) => each[0]);
    place.hidden = false;
    for (const [title, column, text] of [["Records", 2, (n) => n?.toLocaleString("en") ?? ""], ["Size", 3, (n) => (n === null || n === undefined ? "" : size(n))], ["Watermark", 4, day]]) {
      const values = points.map((each) => each[column]);
      if (values.every((each) => each === null)) continue;
      const box = make("div", { class: "plot", role: "img", "aria-label": `${title} by block: from ${text(values[0])} at block ${blocks[0]} to ${text(values.at(-1))} at block ${blocks.at(-1)}` });
      place.append(make("h3", {}, `${title} by block`), box);
      // A scale begins where its values do, also where they are all the same.
      const isTime = title === "Watermark", least = isTime ? 43200 : 1;
      const range = (_, low, high) => { const more = Math.max((high - low) / 20, least); return low === null ? [0, 1] : [isTime ? low - more : Math.max(0, low - more), high + more]; };
      const last = (n, at) => (at === null ? values.at(-1) : n);
      const axis = { stroke: color("text"), grid: { stroke: color("line"), width: 1 }, ticks: { stroke: color("line") } };
      const plot = new uPlot({
        width: box.clientWidth, height: 180, scales: { x: { time: false }, y: { range } },
        hooks: { draw: [({ scales }) => { box.dataset.axis = [scales.y.min, scales.y.max].map(text).join(" to "); }] },
        axes: [{ ...axis, incrs: [1, 2, 5].flatMap((n) => [n, 10 * n, 100 * n, 1e3 * n, 1e4 * n, 1e5 * n, 1e6 * n]).sort((a, b) => a - b), values: (_, all) => all.map((n) => `#${n}`) }, { ...axis, ...(isTime ? { incrs: TIMES } : {}), size: isTime ? 140 : 80, values: (_, all) => all.map(text) }],
        series: [{ label: "Block", value: (_, n, __, at) => `#${at === null ? blocks.at(-1) : n}` }, { label: title, stroke: color("accent"), width: 2, paths: uPlot.paths.stepped({ align: 1 }), points: { show: points.length < 60, size: 5 }, value: (_, n, __, at) => text(last(n, at)) }],
      }, [blocks, values], box);
      new ResizeObserver(() => plot.setSize({ width: box.clientWidth, height: 180 })).observe(place);
    }
  }

  // --- Copying ---

  function copier(block) {
    const text = block.textContent;
    const button = make("button", { type: "button", class: "copier", onclick: async () => {
      try { await navigator.clipboard.writeText(text); button.textContent = "Copied"; } catch {
        const range = document.createRange(); range.selectNodeContents(block.firstChild); getSelection().removeAllRanges(); getSelection().addRange(range); button.textContent = "Selected: press Ctrl-C";
      }
      setTimeout(() => { button.textContent = "Copy"; }, 2000);
    } }, "Copy");
    block.append(button);
  }

  function whenSeen(selector, show) {
    const seen = new IntersectionObserver((entries) => entries.filter((each) => each.isIntersecting).forEach((each) => { seen.unobserve(each.target); show(each.target); }), { rootMargin: "300px" });
    document.querySelectorAll(selector).forEach((each) => seen.observe(each.hidden ? (each.hidden = false, each) : each));
  }

  document.querySelectorAll("[data-search]").forEach(search);
  whenSeen("[data-graph]", graph);
  whenSeen("[data-columns]", columns);
  whenSeen("[data-points]", plots);
  document.querySelectorAll("pre.copy").forEach(copier);
})();
