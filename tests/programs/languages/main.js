// Code that is compiled and given up while it runs, exceptions through it, WebAssembly, a stack that overflows.
const numbers = [];
for (let i = 0; i < 200000; i++) numbers.push((i * 7) % 13);
console.log(numbers.sort().length, new Set(numbers).size);
try {
  null.x;
} catch (error) {
  console.log(error.message);
}
function add(a, b) {
  return a + b;
}
let sum = 0;
for (let i = 0; i < 100000; i++) sum = add(sum, i);
console.log(add(sum, "text"), add({}, []));
const { createHash } = require("crypto");
const { gzipSync, gunzipSync } = require("zlib");
console.log(createHash("sha256").update("x".repeat(1e6)).digest("hex"));
console.log(gunzipSync(gzipSync("abc")).toString());
console.log(new WebAssembly.Module(new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0])) !== null);
function deep() {
  return deep() + 1;
}
try {
  deep();
} catch (error) {
  console.log(error.name);
}
console.log(JSON.stringify([..."aé😀"].map((c) => c.codePointAt(0))), /(\w+)\s\1/.test("hello hello"));
async function* count(to) {
  for (let i = 0; i < to; i++) yield i;
}
(async () => {
  for await (const i of count(3)) console.log(i);
  setTimeout(() => process.exit(9), 1);
})();
