// The tables of docs/configuration.md and docs/errors.md, made from the code they describe.
import { readFileSync } from "node:fs";
import ts from "typescript";
import { type ConfigField, configFields, snakeCase } from "../../src/core/config.js";
import { errorCodes } from "../../src/core/errors.js";
import { httpCodes } from "../../src/frontend/errors.js";

const root = new URL("../../", import.meta.url);

/** A Markdown table with its columns aligned, as the formatter leaves it. */
function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = head.map((_, column) => Math.max(...[head, ...rows].map((cells) => cells[column]?.length ?? 0)));
  const line = (cells: readonly string[], fill: string) =>
    `| ${cells.map((cell, column) => cell.padEnd(widths[column] ?? 0, fill)).join(" | ")} |`;
  return [line(head, " "), line(Array(head.length).fill(""), "-"), ...rows.map((row) => line(row, " "))].join("\n");
}

/** The doc comment of each field of an interface. */
function fieldComments(path: string, name: string): Map<string, string> {
  const source = ts.createSourceFile(path, readFileSync(new URL(path, root), "utf8"), ts.ScriptTarget.ESNext, true);
  const comments = new Map<string, string>();
  for (const statement of source.statements) {
    if (!ts.isInterfaceDeclaration(statement) || statement.name.text !== name) continue;
    for (const member of statement.members) {
      const [doc] = ts.getJSDocCommentsAndTags(member);
      const text = doc && ts.getTextOfJSDocComment(doc.comment);
      if (member.name && text) comments.set(member.name.getText(), text.replace(/\s+/g, " "));
    }
  }
  return comments;
}

function range(field: ConfigField): string {
  if (field.kind === "boolean") return "true, false";
  if (field.kind === "choice") return field.choices.join(", ");
  return field.max === Number.MAX_VALUE ? `≥ ${field.min}` : `${field.min} … ${field.max}`;
}

function configuration(): string {
  const meaning = fieldComments("src/core/config.ts", "KvRouterConfig");
  const rows = Object.entries<ConfigField>(configFields).map(([name, field]) => [
    `\`${snakeCase(name)}\``,
    field.default === undefined ? "off" : `\`${field.default}\``,
    range(field),
    field.overridable ? `\`${snakeCase(field.override ?? name)}\`` : "no",
    meaning.get(name) ?? "",
  ]);
  return table(["field", "default", "range", "override of one request", "meaning"], rows);
}

function errors(codes: Readonly<Record<string, readonly [status: number, help: string]>>): string {
  const rows = Object.entries(codes).map(([code, [status, help]]) => [`\`${code}\``, String(status), help]);
  return table(["code", "HTTP status", "what to do"], rows);
}

/** By document: what must stand between each pair of its `table` markers. */
export const tables: Readonly<Record<string, readonly string[]>> = {
  "docs/configuration.md": [configuration()],
  "docs/errors.md": [errors(errorCodes), errors(httpCodes)],
};
