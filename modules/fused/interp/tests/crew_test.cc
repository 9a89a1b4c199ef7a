// Threads that help each other: all pieces are run, wherever they were cut.
#include "fused/interp/cpu/crew.h"

#include <atomic>
#include <gtest/gtest.h>
#include <memory>
#include <stdexcept>
#include <vector>

#include "backends/cpu/watched_executor.h"
#include "fz/error.h"

namespace fz::interp {
namespace {

template <class F>
void forEach(Crew& crew, std::size_t n_pieces, std::size_t depth, std::size_t member, F f) {
  crew.forEach(n_pieces, depth, member, {&f, [](void* object, std::size_t piece, std::size_t by) {
                                           (*static_cast<F*>(object))(piece, by);
                                         }});
}

TEST(InterpCrew, AllPiecesAreRunOnceWhereverTheyWereCut) {
  for (const std::size_t threads : {1u, 2u, 5u, 40u}) {
    const std::unique_ptr<CpuExecutor> executor = makeCpuExecutor(threads, ThreadBackend::kStd);
    Crew crew(*executor);
    EXPECT_LE(crew.size(), Crew::kMostMembers);
    for (std::size_t round = 0; round < 20; ++round) {
      std::vector<std::atomic<int>> runs(7 * 5 * 3 * 11);
      crew.run([&](std::size_t lead) {
        forEach(crew, 7, 0, lead, [&](std::size_t a, std::size_t first) {
          forEach(crew, 5, 1, first, [&](std::size_t b, std::size_t second) {
            forEach(crew, 3, 2, second, [&](std::size_t c, std::size_t third) {
              forEach(crew, 11, Crew::kDeepest, third, [&](std::size_t d, std::size_t by) {
                EXPECT_LT(by, crew.size());
                runs[((a * 5 + b) * 3 + c) * 11 + d].fetch_add(1);
              });
            });
          });
        });
      });
      for (const std::atomic<int>& n : runs) {
        ASSERT_EQ(n.load(), 1);
      }
    }
  }
}

TEST(InterpCrew, AMemberIsInOnePieceOfADepthAtATime) {
  const std::unique_ptr<CpuExecutor> executor = makeCpuExecutor(6, ThreadBackend::kStd);
  Crew crew(*executor);
  std::vector<std::vector<int>> is_busy(Crew::kDepths, std::vector<int>(crew.size()));
  const auto within = [&](std::size_t depth, std::size_t member, auto f) {
    EXPECT_EQ(is_busy[depth][member]++, 0);
    f();
    --is_busy[depth][member];
  };
  for (std::size_t round = 0; round < 50; ++round) {
    crew.run([&](std::size_t lead) {
      forEach(crew, 9, 0, lead, [&](std::size_t /*piece*/, std::size_t member) {
        within(0, member, [&] {
          forEach(crew, 9, 1, member,
                  [&](std::size_t /*inner*/, std::size_t by) { within(1, by, [] {}); });
        });
      });
    });
  }
}

TEST(InterpCrew, WhatAPieceThrowsComesToWhoCutIt) {
  const std::unique_ptr<CpuExecutor> executor = makeCpuExecutor(4, ThreadBackend::kStd);
  Crew crew(*executor);
  for (std::size_t round = 0; round < 50; ++round) {
    const auto run = [&](std::size_t bad) {
      crew.run([&](std::size_t lead) {
        forEach(crew, 6, 0, lead, [&](std::size_t a, std::size_t member) {
          forEach(crew, 6, 1, member, [&](std::size_t b, std::size_t /*by*/) {
            if (a * 6 + b == bad) {
              throw std::runtime_error("bad");
            }
          });
        });
      });
    };
    EXPECT_THROW(run(round % 36), std::runtime_error);
    EXPECT_NO_THROW(run(36));
  }
}

TEST(InterpCrew, NothingBeginsOnceTheCallWasAskedToStop) {
  for (const std::size_t threads : {1u, 3u}) {
    const std::unique_ptr<CpuExecutor> inner = makeCpuExecutor(threads, ThreadBackend::kStd);
    RunProgress progress;
    const WatchedExecutor executor(*inner, progress);
    Crew crew(executor);
    std::atomic<int> n_run = 0;
    const auto run = [&] {
      crew.run([&](std::size_t lead) {
        forEach(crew, 1000, 0, lead, [&](std::size_t /*piece*/, std::size_t /*by*/) {
          n_run.fetch_add(1);
          progress.is_cancelled.store(true);
        });
      });
    };
    EXPECT_THROW(run(), Error);
    EXPECT_LE(n_run.load(), static_cast<int>(threads));
  }
}

}  // namespace
}  // namespace fz::interp
