% Backtracking, exceptions, long lists.
:- initialization(main).

fib(0, 0).
fib(1, 1).
fib(N, F) :- N > 1, A is N - 1, B is N - 2, fib(A, X), fib(B, Y), F is X + Y.

count(0, []) :- !.
count(N, [N|Rest]) :- M is N - 1, count(M, Rest).

main :-
    fib(17, F), write(F), nl,
    count(20000, List), length(List, Length), write(Length), nl,
    catch(atom_length(_, _), error(_, _), (write(caught), nl)),
    findall(X-Y, (member(X, [1, 2, 3]), member(Y, [a, b])), Pairs), write(Pairs), nl,
    halt(5).
