#pragma once

#include <memory>
#include <utility>

namespace fz {

template <class Signature>
class FunctionRef;

/// A callable that somebody else keeps alive; unlike std::function it never allocates.
template <class R, class... Args>
class FunctionRef<R(Args...)> {
 public:
  template <class F>
  FunctionRef(const F& f)  // NOLINT(google-explicit-constructor)
      : object_(std::addressof(f)), call_([](const void* object, Args... args) -> R {
          return (*static_cast<const F*>(object))(std::forward<Args>(args)...);
        }) {}

  R operator()(Args... args) const { return call_(object_, std::forward<Args>(args)...); }

 private:
  const void* object_;
  R (*call_)(const void*, Args...);
};

}  // namespace fz
