// The time-ordered queues, measured: the keyed queue against the seed's literal design, the slot ring against
// uv_timer_t, the schedule against a heap, the round queue, and what a queue needs as it grows.
//
// CPU time; rivals in interleaved rounds of one run, their queues warm from a round that is not counted; all results
// are verified. `--json` writes the figures to stdout, for bench/plot.

#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness.hpp"
#include "queues/growth.hpp"
#include "queues/keyed.hpp"
#include "queues/ring.hpp"
#include "queues/round.hpp"
#include "queues/schedule.hpp"

namespace {

struct Figure {
    std::string name;
    double value;
    std::string unit;
    std::optional<double> bar = {};  // to be reached; of times "x" at least, of all else at most
};

struct Point {
    std::size_t items;
    double vigil;
    std::optional<double> literal;
};

struct Report {
    std::vector<Figure> figures;
    std::vector<Point> scale;  // nanoseconds per message

    void add(std::string name, double value, std::string unit, std::optional<double> bar = {}) {
        figures.push_back({std::move(name), value, std::move(unit), bar});
        std::fprintf(stderr, "  %s: %.4g %s\n", figures.back().name.c_str(), value, figures.back().unit.c_str());
    }

    void print() const {
        std::printf("%-66s %10s %-8s %s\n", "", "measured", "", "bar");
        for (const auto& [name, value, unit, bar] : figures) {
            std::printf("%-66s %10.4g %-8s", name.c_str(), value, unit.c_str());
            if (bar) {
                const bool reached = unit == "x" ? value >= *bar : value <= *bar;
                std::printf(" %s %g%s", unit == "x" ? "at least" : "at most", *bar, reached ? "" : "  NOT REACHED");
            }
            std::printf("\n");
        }
        std::printf("\n%-66s %10s %10s\n", "ns per message (push + evict), by items in the queue", "vigil", "literal");
        for (const auto& [items, vigil, literal] : scale) {
            std::printf("%66zu %10.0f %10s\n", items, vigil,
                        literal ? std::to_string(static_cast<long>(*literal)).c_str() : "-");
        }
    }

    void print_json() const {
        std::printf("{\"figures\": [");
        const char* separator = "\n";
        for (const auto& [name, value, unit, bar] : figures) {
            std::printf("%s  {\"name\": \"%s\", \"value\": %.6g, \"unit\": \"%s\"", separator, name.c_str(), value,
                        unit.c_str());
            if (bar) std::printf(", \"bar\": %g", *bar);
            std::printf("}");
            separator = ",\n";
        }
        std::printf("\n], \"scale\": [");
        separator = "\n";
        for (const auto& [items, vigil, literal] : scale) {
            std::printf("%s  {\"items\": %zu, \"vigil_ns\": %.6g", separator, items, vigil);
            if (literal) std::printf(", \"literal_ns\": %.6g", *literal);
            std::printf("}");
            separator = ",\n";
        }
        std::printf("\n]}\n");
    }
};

/// The median over the rounds of what `round(number)` gives; one round more is run before, and not counted.
std::vector<double> medians(long rounds, const std::function<std::vector<double>(std::uint64_t)>& round) {
    round(0);
    std::vector<std::vector<double>> columns;
    for (long number = 1; number <= rounds; ++number) {
        const auto values = round(static_cast<std::uint64_t>(number));
        columns.resize(values.size());
        for (std::size_t column = 0; column < values.size(); ++column) columns[column].push_back(values[column]);
    }
    std::vector<double> result;
    for (const auto& column : columns) result.push_back(bench::median(column));
    return result;
}

/// Each round comes after the one before, in virtual time.
vigil::TimePoint base_of(std::uint64_t round) { return vigil::TimePoint{} + std::chrono::minutes{round}; }

constexpr std::size_t batch = 64;

void measure_keyed(Report& report, std::size_t messages, long rounds) {
    std::fprintf(stderr, "keyed queue, %zu messages of %zu random keys\n", messages, 10 * messages);
    bench::keyed::Literal literal;
    vigil::PriorityHashQueue single, batched;
    double cold_literal = 0, cold_batched = 0;
    const auto result = medians(rounds, [&](std::uint64_t round) {
        const bench::keyed::Workload workload(messages, 10 * messages, round);
        const double first = bench::keyed::run_literal(literal, workload, base_of(round)).total();
        const double second = bench::keyed::run_vigil(single, workload, base_of(round), 1).total();
        const auto third = bench::keyed::run_vigil(batched, workload, base_of(round), batch);
        if (round == 0) {
            cold_literal = first;
            cold_batched = third.total();
        }
        return std::vector{first,      second,     third.total(), first / second, first / third.total(),
                           third.push, third.evict};
    });
    report.add("keyed, random keys: literal design", result[0], "ns");
    report.add("keyed, random keys: vigil, one by one", result[1], "ns");
    report.add("keyed, random keys: vigil, in batches", result[2], "ns");
    report.add("  of that, push", result[5], "ns");
    report.add("  of that, evict", result[6], "ns");
    report.add("keyed, random keys: literal / vigil, one by one", result[3], "x");
    report.add("keyed, random keys: literal / vigil, in batches", result[4], "x", 8);
    report.add("keyed, random keys: the same, all memory new", cold_literal / cold_batched, "x");
}

void measure_updates(Report& report, std::size_t messages, long rounds) {
    std::fprintf(stderr, "keyed queue, updates only, %zu messages of 10000 keys\n", messages);
    bench::keyed::Literal literal;
    vigil::PriorityHashQueue single, batched;
    const auto result = medians(rounds, [&](std::uint64_t round) {
        const bench::keyed::Workload workload(messages, 10'000, round);
        const double first = bench::keyed::run_literal(literal, workload, base_of(round)).total();
        const double second = bench::keyed::run_vigil(single, workload, base_of(round), 1).total();
        const double third = bench::keyed::run_vigil(batched, workload, base_of(round), batch).total();
        return std::vector{first, second, third, first / second, first / third};
    });
    report.add("keyed, updates only: literal design", result[0], "ns");
    report.add("keyed, updates only: vigil, one by one", result[1], "ns");
    report.add("keyed, updates only: vigil, in batches", result[2], "ns");
    report.add("keyed, updates only: literal / vigil, one by one", result[3], "x");
    report.add("keyed, updates only: literal / vigil, in batches", result[4], "x", 30);
}

/// Of more than a million it would take minutes.
std::optional<double> literal_cost_at(std::size_t items, long rounds) {
    if (items > 1'000'000) return std::nullopt;
    bench::keyed::Literal literal;
    return medians(std::min(rounds, 3L), [&](std::uint64_t round) {
        const bench::keyed::Workload workload(items, 10 * items, round);
        return std::vector{bench::keyed::run_literal(literal, workload, base_of(round)).total()};
    })[0];
}

/// Several sizes in each round, so that those that are compared meet the same machine. Gives the cost of each.
std::vector<double> costs_at(Report& report, const std::vector<std::size_t>& sizes, long rounds) {
    std::fprintf(stderr, "keyed queue, %zu items\n", sizes.back());
    std::vector<vigil::PriorityHashQueue> queues(sizes.size());
    const auto costs = medians(rounds, [&](std::uint64_t round) {
        std::vector<double> of_round;
        for (std::size_t index = 0; index < sizes.size(); ++index) {
            const bench::keyed::Workload workload(sizes[index], 10 * sizes[index], round);
            of_round.push_back(bench::keyed::run_vigil(queues[index], workload, base_of(round), batch).total());
        }
        of_round.push_back(of_round.back() / of_round.front());
        return of_round;
    });
    for (std::size_t index = 0; index < sizes.size(); ++index) {
        report.scale.push_back({sizes[index], costs[index], literal_cost_at(sizes[index], rounds)});
    }
    return costs;
}

void measure_scale(Report& report, std::size_t most, long rounds) {
    std::vector<std::size_t> sizes;
    for (std::size_t items = 1000; items <= std::max<std::size_t>(most, 1000); items *= 10) sizes.push_back(items);
    for (std::size_t index = 0; index + 2 < sizes.size(); ++index) costs_at(report, {sizes[index]}, rounds);
    if (sizes.size() < 2) return;
    const auto last_two = costs_at(report, {sizes[sizes.size() - 2], sizes.back()}, rounds);
    const std::string name = std::to_string(sizes.back()) + " items / " + std::to_string(sizes[sizes.size() - 2]);
    report.add("keyed, cost per message at " + name, last_two.back(), "", 1.8);
}

void measure_growth(Report& report, std::size_t items) {
    std::fprintf(stderr, "keyed queue, growing to %zu items\n", items);
    const auto growth = bench::growth::measure(items);
    report.add("keyed, resident memory per item", growth.resident_bytes_each, "bytes", 200);
    report.add("keyed, slowest call while growing", growth.slowest_call, "ms", 5);
    report.add("keyed, entries of the schedule per item, at most", growth.entries_for_items, "", 2);
}

void measure_ring(Report& report, std::size_t timers, long rounds) {
    std::fprintf(stderr, "slot ring, %zu timers, half of them cancelled\n", timers);
    const auto result = medians(rounds, [&](std::uint64_t round) {
        const bench::ring::Workload workload(timers, round);
        const auto uv = bench::ring::run_uv(workload);
        const auto vigil = bench::ring::run_vigil(workload);
        return std::vector{uv.total(), vigil.total(), uv.total() / vigil.total(), vigil.bytes, uv.bytes};
    });
    const std::string name = "slot ring, " + std::to_string(timers) + " timers: ";
    report.add(name + "uv_timer_t", result[0], "ns");
    report.add(name + "SlotRing", result[1], "ns");
    report.add(name + "uv_timer_t / SlotRing", result[2], "x", 10);
    report.add(name + "memory beyond the value", result[3], "bytes", 32);
    report.add(name + "the same of uv_timer_t", result[4], "bytes");
}

void measure_schedule(Report& report, std::size_t entries, long rounds) {
    using namespace std::chrono_literals;
    struct Dues {
        const char* name;
        std::size_t count;
        vigil::Duration first, last;
    };
    const Dues all[] = {{"near, 3 to 15 s", entries, 3s, 15s},
                        {"far, 20 s to 1 h", entries, 20s, 1h},
                        {"sparse, 1% of it in 20 s to 1 h", entries / 100, 20s, 1h},
                        {"days, 5 h to 5 days", entries, 5h, 120h}};
    for (const auto& dues : all) {
        std::fprintf(stderr, "schedule, %s\n", dues.name);
        const auto result = medians(rounds, [&](std::uint64_t round) {
            const bench::schedule::Workload workload(dues.count, dues.first, dues.last, round);
            const double schedule = bench::schedule::run_schedule(workload);
            const double heap = bench::schedule::run_heap(workload);
            return std::vector{schedule, heap, heap / schedule};
        });
        const std::string name = std::string("schedule, ") + dues.name;
        report.add(name + ": Schedule", result[0], "ns");
        report.add(name + ": 4-ary heap / Schedule", result[2], "x");
    }
}

void measure_round(Report& report, std::size_t items, long rounds) {
    std::fprintf(stderr, "round queue, %zu items\n", items);
    const auto result =
        medians(rounds, [&](std::uint64_t) { return std::vector{bench::round::nanoseconds_per_take(items, items)}; });
    report.add("round queue, take", result[0], "ns", 150);
}

}  // namespace

int main(int argc, char** argv) {
    bench::Arguments arguments(argc, argv);
    const bool json = arguments.flag("--json");
    const auto messages = static_cast<std::size_t>(arguments.get("--messages", 1'000'000));
    const auto most = static_cast<std::size_t>(arguments.get("--most", 10'000'000));
    const auto rounds = arguments.get("--rounds", 5);
    arguments.done();

    Report report;
    measure_growth(report, most);
    measure_keyed(report, messages, rounds);
    measure_updates(report, messages, rounds);
    measure_scale(report, most, rounds);
    measure_ring(report, messages, rounds);
    if (most > messages) measure_ring(report, most, std::min(rounds, 3L));
    measure_schedule(report, messages, rounds);
    measure_round(report, messages, rounds);
    if (json) {
        report.print_json();
    } else {
        report.print();
    }
}
