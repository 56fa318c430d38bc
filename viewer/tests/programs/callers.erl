%% Functions with known callers: erlc callers.erl && erl +JPperf true -noshell -pa . -run callers main 2
%% The number is one of CPU seconds. leaf is called through in_a, in_b and in_c, which give it
%% 1 : 2 : 3 parts of its work. Prints
%%   {"pid":…, "chains":{"leaf":["leaf;in_a;callerA;middle;loop;main", …]}}
-module(callers).
-export([main/1, leaf/2]).

main([Seconds]) ->
    loop(cpu() + 1000 * list_to_integer(Seconds), 0),
    Chains = lists:join($,, [io_lib:format("\"leaf;in_~s;caller~s;middle;loop;main\"", [string:lowercase(C), C])
        || C <- ["A", "B", "C"]]),
    io:format("{\"pid\":~s,\"chains\":{\"leaf\":[~s]}}~n", [os:getpid(), Chains]),
    halt().

%% Rounds of equal length can keep in step with the samples.
loop(Until, N) ->
    case cpu() < Until of
        false -> 0;
        true -> middle(50000 + N), loop(Until, (N + 10007) rem 100000)
    end.

%% Milliseconds of all threads.
cpu() -> element(1, erlang:statistics(runtime)).

middle(N) -> callerA(N) + callerB(N) + callerC(N) + 0.
callerA(N) -> in_a(N) + 1.
callerB(N) -> in_b(2 * N) + 1.
callerC(N) -> in_c(3 * N) + 1.
in_a(N) -> leaf(N, 0) + 1.
in_b(N) -> leaf(N, 0) + 1.
in_c(N) -> leaf(N, 0) + 1.

leaf(0, S) -> S;
leaf(N, S) -> leaf(N - 1, S + (N band 7)).
