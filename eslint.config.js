// The style of the explorer's JavaScript: prettier (.prettierrc.json) and eslint's recommended rules. Neither is needed to
// use or install qrl; to check the files: npx prettier --check agents/**/*.js && npx eslint agents
import js from "@eslint/js";
import globals from "globals";

export default [
  js.configs.recommended,
  {
    files: ["agents/**/*.js"],
    languageOptions: { globals: globals.browser },
    rules: { "prefer-const": "error", eqeqeq: "error", "no-var": "error", "object-shorthand": "error" },
  },
];
