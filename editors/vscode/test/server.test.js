"use strict";

const assert = require("node:assert/strict");
const { spawn } = require("node:child_process");
const fs = require("node:fs");
const os = require("node:os");
const path = require("node:path");
const test = require("node:test");
const { pathToFileURL } = require("node:url");
const manifest = require("../package.json");
const { serverCommand } = require("../server.js");

test("the odfbuild of the folder's virtual environment comes first", () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "odfbuild-"));
  assert.deepEqual(serverCommand({}, folder), { command: "odfbuild", args: ["lsp"] });
  const own = path.join(folder, ".venv", "bin", "odfbuild");
  fs.mkdirSync(path.dirname(own), { recursive: true });
  fs.writeFileSync(own, "");
  assert.deepEqual(serverCommand({}, folder), { command: own, args: ["lsp"] });
  fs.rmSync(folder, { recursive: true });
});

test("settings name another program and an environment", () => {
  const settings = { command: ["uv", "run", "odfbuild"], environment: "dev" };
  const expected = { command: "uv", args: ["run", "odfbuild", "--env", "dev", "lsp"] };
  assert.deepEqual(serverCommand(settings, undefined), expected);
});

test("the settings that are read are declared", () => {
  const declared = Object.keys(manifest.contributes.configuration.properties);
  assert.deepEqual(declared, ["odfbuild.command", "odfbuild.environment"]);
});

test("the server that is started answers, and has the commands of its lenses", async (context) => {
  const program = process.env.ODFBUILD_PROGRAM ?? "odfbuild";
  const { command, args } = serverCommand({ command: [program] }, undefined);
  const server = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
  const ended = new Promise((resolve) => server.on("exit", resolve));
  send(server, { id: 1, method: "initialize", params: { processId: null, rootUri: String(pathToFileURL(os.tmpdir())), capabilities: {} } });
  // A failed comparison must not leave the server, for whose end Node would wait.
  context.after(() => server.kill());
  const { result } = await answer(server);
  assert.deepEqual(result.capabilities.executeCommandProvider.commands, ["odfbuild.plan", "odfbuild.explain", "odfbuild.test"]);
  assert.equal(result.serverInfo.name, "odfbuild");
  send(server, { id: 2, method: "shutdown" });
  await answer(server);
  send(server, { method: "exit" });
  assert.equal(await ended, 0);
});

function send(server, message) {
  const body = JSON.stringify({ jsonrpc: "2.0", ...message });
  server.stdin.write(`Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
}

function answer(server) {
  return new Promise((resolve, reject) => {
    let read = Buffer.alloc(0);
    const take = (part) => {
      read = Buffer.concat([read, part]);
      const end = read.indexOf("\r\n\r\n");
      const length = /Content-Length: (\d+)/.exec(read.toString("utf8", 0, Math.max(end, 0)));
      if (!length || read.length < end + 4 + Number(length[1])) return;
      server.stdout.off("data", take);
      resolve(JSON.parse(read.toString("utf8", end + 4, end + 4 + Number(length[1]))));
    };
    server.stdout.on("data", take);
    server.on("error", reject);
  });
}
