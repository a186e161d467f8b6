// On workerd a .wasm import is a compiled module.
declare module "*/kernel.wasm" {
  const module: WebAssembly.Module;
  export default module;
}
