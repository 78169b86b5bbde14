// Places the nodes of a graph in rows, from its sources downwards, so that edges lead down. Nodes of a row are ordered by
// the middle of their neighbours. Linear in the number of edges, apart from sorting.
const NODE = { width: 214, height: 50, across: 26, down: 44 };

const layOut = (nodes) => {
  // Nodes come in an order in which each stands after those before it.
  for (const node of nodes) {
    node.row = 0;
    for (const before of node.before) node.row = Math.max(node.row, nodes[before].row + 1);
  }
  // Sources stand right above the first node that uses them.
  for (let i = nodes.length - 1; i >= 0; --i) {
    const node = nodes[i];
    if (node.before.length || !node.next.length) continue;
    node.row = Math.max(0, Math.min(...node.next.map((next) => nodes[next].row)) - 1);
  }
  const rows = [];
  nodes.forEach((node, index) => (rows[node.row] ??= []).push(index));
  for (let row = 0; row < rows.length; ++row) rows[row] ??= [];
  const number = () => { for (const row of rows) row.forEach((index, at) => { nodes[index].at = at - (row.length - 1) / 2; }); };
  number();
  for (let sweep = 0; sweep < 6; ++sweep) {
    const down = sweep % 2 === 0;
    const order = down ? rows : [...rows].reverse();
    for (const row of order) {
      for (const index of row) {
        const node = nodes[index];
        const near = down ? node.before : node.next;
        node.wish = near.length ? near.reduce((sum, other) => sum + nodes[other].at, 0) / near.length : node.at;
      }
      row.sort((a, b) => nodes[a].wish - nodes[b].wish || a - b);
      row.forEach((index, at) => { nodes[index].at = at - (row.length - 1) / 2; });
    }
  }
  for (const node of nodes) {
    node.x = node.at * (NODE.width + NODE.across);
    node.y = node.row * (NODE.height + NODE.down);
  }
  return rows;
};
