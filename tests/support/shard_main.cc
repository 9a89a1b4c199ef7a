// main() of the gtest binaries. By hand it is that of gtest. As a shard of ctest, which sets
// FZ_SKIPPED_STATUS, a shard without a case is a failure, and one whose cases were all skipped ends
// with that status, so that ctest counts it as skipped.
#include <cstdio>
#include <cstdlib>
#include <gtest/gtest.h>

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const int status = RUN_ALL_TESTS();
  const char* skipped_status = std::getenv("FZ_SKIPPED_STATUS");
  if (status != 0 || skipped_status == nullptr) {
    return status;
  }
  const testing::UnitTest& cases = *testing::UnitTest::GetInstance();
  if (cases.test_to_run_count() == 0) {
    std::printf("no case is left for this shard: use fewer shards, or another filter\n");
    return 1;
  }
  return cases.skipped_test_count() == cases.test_to_run_count() ? std::atoi(skipped_status) : 0;
}
