// windrow try http://127.0.0.1:9000
import { createServer } from "node:http";

createServer(async (request, response) => {
  let text = "";
  for await (const part of request.setEncoding("utf8")) text += part;
  const body = JSON.parse(text || "{}");
  for (const item of body.items ?? (body.item ? [body.item] : [])) {
    console.log("push to", item.data?.user_id);
  }
  response.writeHead(204).end();                               // no body: all items succeeded
}).listen(process.env.PORT ?? 9000, "127.0.0.1");
