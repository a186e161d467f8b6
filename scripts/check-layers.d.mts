export interface Import {
  specifier: string;
  kind: "type" | "static" | "dynamic";
  line: number;
}
export declare function importsOf(path: string, text: string): Import[];
export declare function checkSource(files: ReadonlyMap<string, string>): string[];
export declare function checkAssembly(files: ReadonlyMap<string, string>): string[];
export declare function readTree(folder: string): Map<string, string>;
