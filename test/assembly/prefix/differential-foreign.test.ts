// A pool of foreign names; a file of its own, so that both modes run side by side.
import { it } from "vitest";
import { expectRecipe, LIMIT, NAME } from "./whole-recipe.js";

it(NAME, LIMIT, () => expectRecipe(false));
