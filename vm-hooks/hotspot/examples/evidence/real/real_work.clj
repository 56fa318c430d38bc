(defn fib [n] (if (< n 2) n (+ (fib (- n 1)) (fib (- n 2)))))
(defn step [m w] (assoc m w (inc (get m w 0))))
(let [words (mapv #(str "w" (mod (* % 7919) 700)) (range 4000))]
  (loop [i 0]
    (let [m (reduce step {} words)
          s (->> (seq m) (sort-by first) (map (fn [[k v]] (str k "=" v))) (clojure.string/join ","))
          p (re-seq #"w(\d+)=(\d+)" s)
          x (into #{} (comp (map #(* % %)) (filter even?) (take 2000)) (range 100000))]
      (count p) (count x) (fib 18)
      (recur (inc i)))))
