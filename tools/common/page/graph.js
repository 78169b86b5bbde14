// The graph on a canvas: draws only what is visible, in one pass for each frame that changes.
class Graph {
  constructor(canvas, on) {
    this.canvas = canvas;
    this.on = on;
    this.nodes = [];
    this.rows = [];
    this.chosen = -1;
    this.matches = new Set();
    this.scale = 1;
    this.x = 0;
    this.y = 0;
    this.frames = 0;
    this.waiting = false;
    new ResizeObserver(() => this.resize()).observe(canvas);
    this.listen();
  }

  show(nodes) {
    this.nodes = nodes;
    this.rows = layOut(nodes);
    this.chosen = -1;
    this.resize();
    this.begin();
  }

  // The beginning at a readable size, the whole graph if it is small.
  begin() {
    this.fit();
    if (this.scale < 0.7 && this.nodes.length) {
      this.scale = 0.9;
      this.x = this.width / 2;
      this.y = 30;
    }
    this.draw();
  }

  fit() {
    if (!this.nodes.length) return this.draw();
    let [left, right, bottom] = [Infinity, -Infinity, 0];
    for (const node of this.nodes) {
      left = Math.min(left, node.x - NODE.width / 2);
      right = Math.max(right, node.x + NODE.width / 2);
      bottom = Math.max(bottom, node.y + NODE.height);
    }
    this.scale = Math.min(1.2, (this.width - 40) / (right - left), (this.height - 40) / bottom);
    this.x = this.width / 2 - (left + right) / 2 * this.scale;
    this.y = 20;
    this.draw();
  }

  zoom(by, x = this.width / 2, y = this.height / 2) {
    const scale = Math.min(4, Math.max(0.01, this.scale * by));
    this.x = x - (x - this.x) * scale / this.scale;
    this.y = y - (y - this.y) * scale / this.scale;
    this.scale = scale;
    this.draw();
  }

  choose(index, moves = true) {
    this.chosen = index;
    const node = this.nodes[index];
    if (node && moves) {
      if (this.scale < 0.45) this.scale = 0.9;
      const x = this.x + node.x * this.scale;
      const y = this.y + (node.y + NODE.height / 2) * this.scale;
      if (x < 120 || x > this.width - 120) this.x += this.width / 2 - x;
      if (y < 60 || y > this.height - 60) this.y += this.height / 2 - y;
    }
    this.draw();
    this.on.choose(index);
  }

  resize() {
    const ratio = window.devicePixelRatio || 1;
    this.width = this.canvas.clientWidth;
    this.height = this.canvas.clientHeight;
    this.canvas.width = Math.round(this.width * ratio);
    this.canvas.height = Math.round(this.height * ratio);
    this.ratio = ratio;
    this.draw();
  }

  draw() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      this.paint();
      ++this.frames;
    });
  }

  paint() {
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue("--" + name).trim();
    const pen = this.canvas.getContext("2d");
    const { width, height } = NODE;
    pen.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    pen.clearRect(0, 0, this.width, this.height);
    pen.translate(this.x, this.y);
    pen.scale(this.scale, this.scale);
    const top = -this.y / this.scale - height, bottom = (this.height - this.y) / this.scale + height;
    const left = -this.x / this.scale - width, right = (this.width - this.x) / this.scale + width;
    const is_readable = this.scale > 0.35;
    // Edges between rows far apart pass beside the nodes between them.
    const edges = (chosen) => {
      pen.beginPath();
      for (let i = 0; i < this.nodes.length; ++i) {
        const node = this.nodes[i];
        if (node.y < top) continue;
        for (const before of node.before) {
          const from = this.nodes[before];
          if (from.y > bottom || (chosen !== (i === this.chosen || before === this.chosen))) continue;
          const [x1, y1, x2, y2] = [from.x, from.y + height, node.x, node.y];
          const rows = node.row - from.row;
          const side = rows > 1 && Math.abs(x1 - x2) < width ? width * 0.62 + Math.min(60, rows * 6) : 0;
          const bend = Math.min(Math.max(20, (y2 - y1) / 2), 160);
          pen.moveTo(x1, y1);
          pen.bezierCurveTo(x1 + side, y1 + bend, x2 + side, y2 - bend, x2, y2);
        }
      }
      pen.strokeStyle = colour(chosen ? "chosen" : "edge");
      pen.lineWidth = (chosen ? 2.2 : 1.1) / Math.max(0.35, Math.min(1, this.scale));
      pen.stroke();
    };
    edges(false);
    if (this.chosen >= 0) edges(true);
    pen.textBaseline = "middle";
    pen.textAlign = "center";
    const text = colour("text"), soft = colour("soft"), line = colour("line");
    this.nodes.forEach((node, index) => {
      if (node.y < top || node.y > bottom || node.x < left || node.x > right) return;
      const x = node.x - width / 2;
      pen.fillStyle = this.on.fill(node, colour);
      pen.beginPath();
      pen.roundRect(x, node.y, width, height, node.kind === "dispatch" ? 6 : 18);
      pen.fill();
      const is_chosen = index === this.chosen, is_match = this.matches.has(index);
      pen.strokeStyle = is_chosen ? colour("chosen") : is_match ? colour("match") : line;
      pen.lineWidth = is_chosen ? 3 : is_match ? 3 : 1;
      pen.stroke();
      if (!is_readable) return;
      pen.fillStyle = text;
      pen.font = "600 12px system-ui, sans-serif";
      pen.fillText(shortened(node.label || node.title, 27), node.x, node.y + 17);
      pen.fillStyle = soft;
      pen.font = "11px system-ui, sans-serif";
      pen.fillText(shortened(node.subtitle, 36), node.x, node.y + 35);
    });
  }

  at(x, y) {
    const gx = (x - this.x) / this.scale, gy = (y - this.y) / this.scale;
    return this.nodes.findIndex((node) => Math.abs(node.x - gx) <= NODE.width / 2 && gy >= node.y && gy <= node.y + NODE.height);
  }

  listen() {
    const canvas = this.canvas;
    let held = null;
    canvas.addEventListener("pointerdown", (event) => {
      held = { x: event.offsetX, y: event.offsetY, moved: false };
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (!held) return;
      const dx = event.offsetX - held.x, dy = event.offsetY - held.y;
      if (!held.moved && Math.abs(dx) + Math.abs(dy) < 4) return;
      this.x += dx;
      this.y += dy;
      held = { x: event.offsetX, y: event.offsetY, moved: true };
      this.draw();
    });
    canvas.addEventListener("pointerup", (event) => {
      const was = held;
      held = null;
      if (was && !was.moved) {
        const index = this.at(event.offsetX, event.offsetY);
        if (index >= 0) this.choose(index, false);
      }
    });
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      if (event.ctrlKey || event.metaKey || event.shiftKey) this.zoom(Math.exp(-event.deltaY / 300), event.offsetX, event.offsetY);
      else { this.x -= event.deltaX; this.y -= event.deltaY; this.draw(); }
    }, { passive: false });
  }
}

const shortened = (text, most) => text.length <= most ? text : text.slice(0, Math.ceil(most * 0.6)) + "…" + text.slice(-Math.floor(most * 0.4) + 1);
