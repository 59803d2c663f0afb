const node = await (await fetch('/version')).json();
document.getElementById('app').textContent = `${node.name} ${node.version} on ${node.node}`;
