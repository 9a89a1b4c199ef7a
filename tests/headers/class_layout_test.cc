// What a program that links the library sees of its classes, beside what the library sees itself.
// Compiled like such a program: none of the library's own definitions.
#include <algorithm>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <memory>
#include <set>
#include <string>
#include <typeindex>
#include <typeinfo>

#include "core/class_layouts_inl.h"

namespace fz::test {
namespace {

TEST(ClassLayout, TheTestIsCompiledLikeAProgramOfAUser) {
#if defined(FZ_HAVE_CUDA) || defined(FZ_HAVE_TBB)
  FAIL() << "private definitions of the library are set";
#endif
}

TEST(ClassLayout, EveryPublicClassIsTheSameForProgramAndLibrary) {
  const auto library = detail::classLayouts();
  ASSERT_EQ(std::size(detail::kClassLayouts), library.size());
  for (std::size_t i = 0; i < library.size(); ++i) {
    const detail::ClassLayout& program = detail::kClassLayouts[i];
    EXPECT_EQ(program, library[i])
        << fmt::format("{}: {} bytes aligned to {} here, {} aligned to {} in the library",
                       library[i].name, program.size_bytes, program.alignment_bytes,
                       library[i].size_bytes, library[i].alignment_bytes);
  }
}

TEST(ClassLayout, EveryInstantiationOfEveryStageIsCompared) {
  std::set<std::type_index> listed;
#define FZ_TYPE(...) listed.insert(typeid(__VA_ARGS__));
  FZ_PUBLIC_STAGES(FZ_TYPE)
#undef FZ_TYPE
  for (const StageDescriptor* stage : allStages()) {
    std::vector<std::vector<DataType>> combinations = stage->type_combinations;
    if (combinations.empty()) {
      combinations.emplace_back();
    }
    for (const std::vector<DataType>& types : combinations) {
      const std::unique_ptr<Stage> made = stage->make(types);
      ASSERT_NE(made, nullptr) << stage->name;
      const Stage& object = *made;
      EXPECT_EQ(listed.count(typeid(object)), 1u)
          << "the instances.def of its folder lacks " << typeid(object).name();
    }
  }
}

TEST(ClassLayout, TheScanOfTheHeadersFindsTheClasses) {
  const auto has = [](std::string_view name) {
    return std::any_of(std::begin(detail::kClassLayouts), std::end(detail::kClassLayouts),
                       [&](const detail::ClassLayout& row) { return row.name == name; });
  };
  EXPECT_TRUE(has("Pipeline"));
  EXPECT_TRUE(has("CompressOptions"));
  EXPECT_TRUE(has("SimpleStage"));
  EXPECT_TRUE(has("MemoryPool"));
}

}  // namespace
}  // namespace fz::test
