// An esbuild plugin that leaves out the large parts of two packages which Skein never reaches; the behaviour of what remains is untouched.

/** Where the pieces of undici lie that `src/fetch` may use. Its own index loads every client, fetch, WebSocket and cache at once (about 100 ms). */
const UNDICI = {
  Agent: "lib/dispatcher/agent.js",
  Client: "lib/dispatcher/client.js",
  Dispatcher: "lib/dispatcher/dispatcher.js",
  EnvHttpProxyAgent: "lib/dispatcher/env-http-proxy-agent.js",
  Pool: "lib/dispatcher/pool.js",
  ProxyAgent: "lib/dispatcher/proxy-agent.js",
  buildConnector: "lib/core/connect.js",
  errors: "lib/core/errors.js",
  util: "lib/core/util.js",
};

export const slimPackages = {
  name: "slim-packages",
  setup(build) {
    build.onResolve({ filter: /^undici$/ }, (args) => ({ path: "undici", namespace: "slim", pluginData: args.resolveDir, sideEffects: false }));
    build.onLoad({ filter: /^undici$/, namespace: "slim" }, (args) => ({
      contents: Object.entries(UNDICI)
        .map(([name, path]) => `export { default as ${name} } from "undici/${path}";`)
        .join("\n"),
      resolveDir: args.pluginData,
    }));
    // A CommonJS module that nobody uses is dropped only if it is said to do nothing when loaded.
    build.onResolve({ filter: /^undici\/lib\// }, async (args) => {
      if (args.namespace !== "slim") return null;
      const found = await build.resolve(args.path, { kind: args.kind, resolveDir: args.resolveDir, pluginData: "seen" });
      return { ...found, sideEffects: false };
    });
    // zod's messages in 50 languages; ours are in English.
    build.onResolve({ filter: /\/locales\/index\.js$/ }, (args) =>
      /node_modules\/zod\//.test(args.importer) ? { path: "zod-locales", namespace: "slim", pluginData: args.resolveDir } : null,
    );
    build.onLoad({ filter: /^zod-locales$/, namespace: "slim" }, (args) => ({
      contents: 'export { default as en } from "../locales/en.js";',
      resolveDir: args.pluginData,
    }));
  },
};
