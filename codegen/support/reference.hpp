// SPDX-License-Identifier: Apache-2.0
// Reference-counted objects, destroyed with the last Reference. This is like std::shared_ptr, whose header would take a
// sixth of the compile time of a file with a kernel. As there, several threads may have References to one object.
#pragma once
#include <concepts>
#include <utility>

namespace ikat {

/// The base of reference-counted objects.
class Counted {
public:
    Counted() = default;
    Counted(const Counted&) = delete;
    Counted& operator=(const Counted&) = delete;
    virtual ~Counted() = default;

private:
    friend class AnyReference;
    long references_ = 0;
};

/// The common base of References to all types.
class AnyReference {
public:
    AnyReference() = default;
    explicit AnyReference(Counted* object);
    AnyReference(const AnyReference& other) : AnyReference(other.object_) {}
    AnyReference(AnyReference&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
    AnyReference& operator=(AnyReference other) noexcept {
        std::swap(object_, other.object_);
        return *this;
    }
    ~AnyReference();

    explicit operator bool() const { return object_ != nullptr; }

protected:
    Counted* object_ = nullptr;
};

template <class T>
class Reference : public AnyReference {
public:
    Reference() = default;
    explicit Reference(T* object) : AnyReference(object) {}
    template <std::derived_from<T> U>
    Reference(const Reference<U>& other) : AnyReference(other) {}

    T* get() const { return static_cast<T*>(object_); }
    T& operator*() const { return *get(); }
    T* operator->() const { return get(); }
};

template <std::derived_from<Counted> T, class... A>
Reference<T> make_reference(A&&... arguments) {
    return Reference<T>(new T(std::forward<A>(arguments)...));
}

}  // namespace ikat
