export default { test: { include: ["out/conformance.js"] } };
