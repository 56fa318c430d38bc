/*
 * A C++ program as people write them, for real reports: templates, namespaces, functions
 * inlined three deep, a shared library's function through the PLT, memory copies, system
 * calls, named threads. Each worker goes through four phases in turn and times each with
 * its own CPU-time clock:
 *
 *   stencil   sim::Grid<double, N>::relax, into which sim::detail::weigh > blend > mix are
 *             always inlined: its samples lie in `mix` and, as machine code, in `relax`
 *   waves     sim::waves, which calls sin() of libm through the PLT; two thirds or more of
 *             its samples lie in libm
 *   copies    memcpy of blocks larger than the caches; its samples lie in libc
 *   calls     pread of one byte from /dev/zero; most of its samples lie in the kernel
 *
 *   inlined [--threads N=2] [--seconds CPU=2]
 *
 * Workers are named solver-0, solver-1 ...; a thread `logger` sleeps most of the time. Prints
 * {"pid":, "threads":[{"tid":, "name":, "cpu_seconds":, "phases":{"stencil":, "waves":,
 *   "copies":, "calls":}}]}. Build with -O2 -g -pthread.
 */
#include <pthread.h>
#include <sys/syscall.h>
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#define ALWAYS_INLINE __attribute__((always_inline)) inline
#define NEVER_INLINE __attribute__((noinline, noclone))

namespace sim {
namespace detail {

ALWAYS_INLINE double mix(double a, double b)
{
	double x = a;
	for (int i = 0; i < 8; i++)
		x = x * 0.5 + b * 0.25;
	return x;
}

ALWAYS_INLINE double blend(double a, double b, double c)
{
	return mix(a, b) + mix(b, c);
}

template <typename T>
ALWAYS_INLINE T weigh(T left, T here, T right)
{
	return blend(left, here, right) * T(0.125);
}

} // namespace detail

template <typename T, std::size_t N>
class Grid {
public:
	Grid() { cells_.fill(T(1)); }

	NEVER_INLINE T relax()
	{
		T sum = 0;
		for (std::size_t i = 1; i + 1 < N; i++) {
			cells_[i] = detail::weigh(cells_[i - 1], cells_[i], cells_[i + 1]);
			sum += cells_[i];
		}
		cells_[0] = T(1);
		return sum;
	}

private:
	std::array<T, N> cells_;
};

NEVER_INLINE double waves(double phase, int count)
{
	double sum = 0;
	for (int i = 0; i < count; i++)
		sum += std::sin(phase + i * 0.001);
	return sum;
}

NEVER_INLINE void copies(std::vector<char> &to, const std::vector<char> &from, int times)
{
	for (int i = 0; i < times; i++) {
		std::memcpy(to.data(), from.data(), from.size());
		__asm__ volatile("" ::"r"(to.data()) : "memory");
	}
}

NEVER_INLINE int calls(int file, int times)
{
	int got = 0;
	char byte;
	for (int i = 0; i < times; i++)
		got += static_cast<int>(pread(file, &byte, 1, i));
	return got;
}

} // namespace sim

namespace {

enum Phase { Stencil, Waves, Copies, Calls, Phases };
constexpr const char *phase_names[Phases] = {"stencil", "waves", "copies", "calls"};

double cpu_seconds()
{
	timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) / 1e9;
}

struct Result {
	long tid = 0;
	std::string name;
	double cpu = 0;
	double phases[Phases] = {};
	double value = 0;
};

class Solver {
public:
	Solver(int number, double seconds) : seconds_(seconds), from_(16u << 20, 'x'), to_(from_.size())
	{
		result_.name = "solver-" + std::to_string(number);
	}

	void operator()()
	{
		result_.tid = syscall(SYS_gettid);
		pthread_setname_np(pthread_self(), result_.name.c_str());
		int zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
		while (cpu_seconds() < seconds_) {
			timed(Stencil, [&] {
				for (int i = 0; i < 40; i++)
					result_.value += grid_->relax();
			});
			timed(Waves, [&] { result_.value += sim::waves(result_.value, 200000); });
			timed(Copies, [&] { sim::copies(to_, from_, 2); });
			timed(Calls, [&] { result_.value += sim::calls(zero, 10000); });
		}
		close(zero);
		result_.cpu = cpu_seconds();
	}

	const Result &result() const { return result_; }

private:
	template <typename F>
	void timed(Phase phase, F &&body)
	{
		double begin = cpu_seconds();
		body();
		result_.phases[phase] += cpu_seconds() - begin;
	}

	double seconds_;
	std::vector<char> from_, to_;
	std::unique_ptr<sim::Grid<double, 4096>> grid_ = std::make_unique<sim::Grid<double, 4096>>();
	Result result_;
};

} // namespace

int main(int argc, char **argv)
{
	int count = 2;
	double seconds = 2;
	for (int i = 1; i + 1 < argc; i += 2) {
		if (!std::strcmp(argv[i], "--threads"))
			count = std::atoi(argv[i + 1]);
		else if (!std::strcmp(argv[i], "--seconds"))
			seconds = std::atof(argv[i + 1]);
	}

	std::atomic<bool> done{false};
	std::thread logger([&done] {
		pthread_setname_np(pthread_self(), "logger");
		while (!done)
			std::this_thread::sleep_for(std::chrono::milliseconds(10));
	});

	std::vector<Solver> solvers;
	solvers.reserve(static_cast<std::size_t>(count));
	for (int i = 0; i < count; i++)
		solvers.emplace_back(i, seconds);
	std::vector<std::thread> threads;
	for (Solver &solver : solvers)
		threads.emplace_back(std::ref(solver));
	for (std::thread &thread : threads)
		thread.join();
	done = true;
	logger.join();

	std::printf("{\"pid\":%d,\"threads\":[", static_cast<int>(getpid()));
	for (std::size_t i = 0; i < solvers.size(); i++) {
		const Result &r = solvers[i].result();
		std::printf("%s{\"tid\":%ld,\"name\":\"%s\",\"cpu_seconds\":%.9f,\"phases\":{",
			    i ? "," : "", r.tid, r.name.c_str(), r.cpu);
		for (int p = 0; p < Phases; p++)
			std::printf("%s\"%s\":%.9f", p ? "," : "", phase_names[p], r.phases[p]);
		std::printf("}}");
	}
	std::printf("]}\n");
}
