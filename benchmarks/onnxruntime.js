// Times a network with ONNX Runtime (the npm package onnxruntime-node, which NODE_PATH must lead to) and prints the
// least time of a call, the median and the number of calls as JSON, times in seconds.
//
// usage: node onnxruntime.js MODEL.onnx THREADS SECONDS
'use strict';
const runtime = require('onnxruntime-node');

const [path, threads, seconds] = process.argv.slice(2);

// Numbers like those of an image or an activation for floats, the first rows of a table for indices.
function input({ type, shape }) {
  const count = shape.reduce((product, size) => product * Number(size), 1);
  if (type === 'int64') return new runtime.Tensor(type, BigInt64Array.from({ length: count }, (_, i) => BigInt(i)), shape);
  if (type !== 'float32') throw new Error(`expected inputs of float32 or int64; found ${type}`);
  return new runtime.Tensor(type, Float32Array.from({ length: count }, (_, i) => Math.sin(i)), shape);
}

async function main() {
  const session = await runtime.InferenceSession.create(path, {
    executionMode: 'sequential',
    graphOptimizationLevel: 'all',
    interOpNumThreads: 1,
    intraOpNumThreads: Number(threads),
  });
  const feeds = Object.fromEntries(session.inputMetadata.map((metadata) => [metadata.name, input(metadata)]));
  for (let i = 0; i < 3; ++i) await session.run(feeds);
  const times = [];
  for (let total = 0; total < Number(seconds) || times.length < 3; total += times.at(-1)) {
    const begin = process.hrtime.bigint();
    await session.run(feeds);
    times.push(Number(process.hrtime.bigint() - begin) * 1e-9);
  }
  times.sort((a, b) => a - b);
  console.log(JSON.stringify({ least: times[0], median: times[times.length >> 1], calls: times.length }));
}

main().catch((error) => {
  console.error(error.message);
  process.exitCode = 1;
});
