%% Most of the time is spent in one function of known name:
%% erlc dominant.erl && erl +JPperf true -noshell -pa . -run dominant main 2
%% The number is one of CPU seconds.
-module(dominant).
-export([main/1, dominant/2, minor/2]).

main([Seconds]) ->
    Until = cpu() + 1000 * list_to_integer(Seconds),
    {Dominant, Minor} = rounds(Until, 0, 0),
    io:format("{\"pid\":~s,\"dominant\":~p,\"minor\":~p}~n", [os:getpid(), Dominant / 1.0e9, Minor / 1.0e9]),
    halt().

%% A round takes some 8 ms: rounds of 2 ms may be in step with the samples.
rounds(Until, Dominant, Minor) ->
    case cpu() < Until of
        false -> {Dominant, Minor};
        true ->
            A = erlang:monotonic_time(nanosecond),
            dominant(4500000, 1),
            B = erlang:monotonic_time(nanosecond),
            minor(500000, 1),
            C = erlang:monotonic_time(nanosecond),
            rounds(Until, Dominant + B - A, Minor + C - B)
    end.

%% Milliseconds of all threads.
cpu() -> element(1, erlang:statistics(runtime)).

dominant(0, X) -> X;
dominant(N, X) -> dominant(N - 1, (X * 5 + N) band 16#ffffff).

minor(0, X) -> X;
minor(N, X) -> minor(N - 1, (X * 3 + N) band 16#ffffff).
