(* Exceptions, garbage, closures, a stack that overflows. *)
exception Odd of int

let rec fib n = if n < 2 then n else fib (n - 1) + fib (n - 2)
let rec deep n = 1 + deep (n + 1)

module Words = Map.Make (String)

let () =
  Printf.printf "%d\n" (fib 24);
  (try List.iter (fun n -> if n mod 2 = 1 then raise (Odd n)) [ 2; 4; 7 ]
   with Odd n -> Printf.printf "odd %d\n" n);
  let add words n = Words.add (string_of_int (n mod 1001)) n words in
  let words = List.fold_left add Words.empty (List.init 50000 Fun.id) in
  Printf.printf "%d\n" (Words.cardinal words);
  (try ignore (Array.get [| 1; 2 |] (fib 5)) with Invalid_argument what -> print_endline what);
  (try ignore (1 / (fib 0)) with Division_by_zero -> print_endline "by zero");
  (try ignore (deep 0) with Stack_overflow -> print_endline "too deep");
  Gc.full_major ();
  exit 3
