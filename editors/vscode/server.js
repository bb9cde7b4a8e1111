// Which program serves a folder. Knows nothing of VS Code, so that Node alone can test it.
"use strict";

const fs = require("node:fs");
const path = require("node:path");

/**
 * Command and arguments that start the language server.
 *
 * `settings` are those of the extension (`command`, `environment`), `folder` is the one that is
 * open, if any: its own virtual environment is used if it has odfbuild.
 */
function serverCommand(settings, folder) {
  const given = settings.command ?? [];
  const own = folder && path.join(folder, ".venv", "bin", "odfbuild");
  const [command, ...first] = given.length ? given : [own && fs.existsSync(own) ? own : "odfbuild"];
  const environment = settings.environment ? ["--env", settings.environment] : [];
  return { command, args: [...first, ...environment, "lsp"] };
}

/** Files that the server looks at; which of them are part of a project, it tells by itself. */
const FILES = ["**/odfbuild.yaml", "**/*.yaml", "**/*.yml", "**/*.yaml.j2", "**/*.sql", "**/*.sql.j2"];

module.exports = { serverCommand, FILES };
