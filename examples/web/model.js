// Loads model.wasm and calls the model: in a page, and in Node.
export async function load(bytes) {
  const { instance } = await WebAssembly.instantiate(bytes, {});
  const { memory, start, input, output, run } = instance.exports;
  if (start() !== 0) throw new Error("the model does not start");
  const tensor = (address) => new Float32Array(memory.buffer, address, 8);
  return (x, y) => {
    tensor(input(0)).set(x);
    tensor(input(1)).set(y);
    const status = run();
    if (status !== 0) throw new Error(`the model fails with status ${status}`);
    return Array.from(tensor(output()));
  };
}
