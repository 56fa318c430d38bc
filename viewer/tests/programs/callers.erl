%% Functions with known callers: erlc callers.erl && erl +JPperf true -noshell -pa . -run callers main 2
%% The number is one of CPU seconds. leaf is called through in_a, in_b and in_c, which give it
%% 1 : 2 : 3 parts of its work. Prints
%%   {"pid":…, "chains":{"leaf":["leaf;in_a;callerA;middle;loop;main", …]}}
-module(callers).
-export([main/1, leaf/2]).

main([Seconds]) ->
    loop(cpu() + 1000 * list_to_integer(Seconds)),
    Chains = lists:join($,, [io_lib:format("\"leaf;in_~s;caller~s;middle;loop;main\"", [string:lowercase(C), C])
        || C <- ["A", "B", "C"]]),
    io:format("{\"pid\":~s,\"chains\":{\"leaf\":[~s]}}~n", [os:getpid(), Chains]),
    halt().

loop(Until) ->
    case cpu() < Until of
        false -> 0;
        true -> middle(), loop(Until)
    end.

%% Milliseconds of all threads.
cpu() -> element(1, erlang:statistics(runtime)).

middle() -> callerA() + callerB() + callerC() + 0.
callerA() -> in_a(100000) + 1.
callerB() -> in_b(200000) + 1.
callerC() -> in_c(300000) + 1.
in_a(N) -> leaf(N, 0) + 1.
in_b(N) -> leaf(N, 0) + 1.
in_c(N) -> leaf(N, 0) + 1.

leaf(0, S) -> S;
leaf(N, S) -> leaf(N - 1, S + (N band 7)).
