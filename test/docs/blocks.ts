// Fenced blocks of a document, in order, with what the words after the language ask for.
import { readdirSync, readFileSync } from "node:fs";

/**
 * Words after the language: `background` for a command that keeps running, `output` for what the block before it
 * prints (`…` stands for anything), `file=NAME` for a file that later blocks read.
 */
export interface Block {
  line: number;
  language: string;
  words: readonly string[];
  text: string;
}

const root = new URL("../../", import.meta.url);

/** README.md and everything in docs/. */
export function documents(): string[] {
  const pages = readdirSync(new URL("docs/", root)).filter((name) => name.endsWith(".md"));
  return ["README.md", ...pages.sort().map((name) => `docs/${name}`)];
}

export function blocksOf(document: string): Block[] {
  const blocks: Block[] = [];
  let open: { block: Block; lines: string[] } | undefined;
  readFileSync(new URL(document, root), "utf8")
    .split("\n")
    .forEach((text, i) => {
      const fence = /^```(.*)$/.exec(text);
      if (open && fence) {
        blocks.push({ ...open.block, text: open.lines.join("\n") });
        open = undefined;
      } else if (open) {
        open.lines.push(text);
      } else if (fence) {
        const [language = "", ...words] = (fence[1] ?? "").trim().split(/\s+/);
        open = { block: { line: i + 1, language, words, text: "" }, lines: [] };
      }
    });
  if (open) throw new Error(`${document}:${open.block.line}: the block is never closed`);
  return blocks;
}

/** Whether `printed` is what a document shows; `…` stands for anything, alone on a line for any number of lines. */
export function matches(printed: string, shown: string): boolean {
  const pattern = shown
    .trimEnd()
    .split("\n")
    .map((line) => {
      if (line.trim() === "…") return "(?:.*\\n)*?";
      return `${line
        .split("…")
        .map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"))
        .join(".*")}\\n`;
    })
    .join("");
  return new RegExp(`^${pattern}$`).test(`${printed.replaceAll("\r", "").trimEnd()}\n`);
}
