export function Item(){ return null; }
