export function History(){ return null; }
