// Starts `odfbuild lsp` and connects VS Code with it. The server is part of odfbuild, not of this.
"use strict";

const vscode = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");
const { serverCommand, FILES } = require("./server.js");

let client;

async function start() {
  const folder = vscode.workspace.workspaceFolders?.[0]?.uri.fsPath;
  const settings = vscode.workspace.getConfiguration("odfbuild");
  const server = serverCommand(
    { command: settings.get("command"), environment: settings.get("environment") },
    folder,
  );
  client = new LanguageClient(
    "odfbuild",
    "odfbuild",
    { ...server, options: { cwd: folder } },
    {
      documentSelector: FILES.map((pattern) => ({ scheme: "file", pattern })),
      synchronize: { fileEvents: FILES.map((each) => vscode.workspace.createFileSystemWatcher(each)) },
    },
  );
  try {
    await client.start();
  } catch (error) {
    vscode.window.showErrorMessage(
      `${server.command} does not start (${error.message}). ` +
        "Run pip install 'odfbuild[editor]', or set odfbuild.command.",
    );
  }
}

async function stop() {
  await client?.stop().catch(() => undefined);
  client = undefined;
}

async function activate(context) {
  const restart = async () => {
    await stop();
    await start();
  };
  context.subscriptions.push(
    vscode.commands.registerCommand("odfbuild.restart", restart),
    vscode.workspace.onDidChangeConfiguration(async (event) => {
      if (event.affectsConfiguration("odfbuild")) await restart();
    }),
  );
  await start();
}

module.exports = { activate, deactivate: stop };
