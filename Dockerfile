# Skein in a container: the service by default, a worker or a crawl by another command.
#   docker build -t skein .
#   docker run -p 127.0.0.1:5000:5000 -v skein-data:/data skein
#   docker run --no-healthcheck -e REDIS_URL=redis://redis:6379 skein work
# With REDIS_URL, or linked to a container that is called redis, the service keeps its crawls there; jobs and results lie in /data/skein-data in any case.
FROM node:24-bookworm-slim AS build
WORKDIR /src
COPY package.json package-lock.json ./
RUN npm ci --ignore-scripts
COPY . .
RUN node scripts/build.mjs --strict && npm pack --ignore-scripts --pack-destination /tmp

FROM node:24-bookworm-slim
ENV NODE_ENV=production
COPY --from=build /tmp/skein-*.tgz /tmp/
# npm leaves root's compile cache in /tmp, where the user of the image could then not have one of its own.
RUN npm install --global --ignore-scripts /tmp/skein-*.tgz && rm -rf /tmp/* /root/.npm \
  && mkdir /data && chown node:node /data
USER node
WORKDIR /data
VOLUME /data
EXPOSE 5000
# Of the service; a worker has none and is started with --no-healthcheck, or as compose.yaml does.
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s \
  CMD ["node", "-e", "fetch('http://127.0.0.1:' + /\\d+$/.exec(process.env.WEBAPP_PORT || process.env.PORT || '5000')[0] + '/healthz').then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["skein"]
# Inside of the container every address must listen; who may connect is decided by what is published. With a token: docker run -e SKEIN_TOKEN=… skein serve --host 0.0.0.0
CMD ["serve", "--host", "0.0.0.0", "--no-auth"]
