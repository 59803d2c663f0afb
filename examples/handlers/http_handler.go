package main // windrow try http://127.0.0.1:9000

import "cmp"
import "encoding/json"
import "net/http"
import "os"

func main() {
	panic(http.ListenAndServe("127.0.0.1:"+cmp.Or(os.Getenv("PORT"), "9000"), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var call struct{ Item, Items any }
		json.NewDecoder(r.Body).Decode(&call)
		json.NewEncoder(os.Stdout).Encode(call) // the work: an item, or with --batch several
		w.WriteHeader(204)                      // no body: all items succeeded
	})))
}
